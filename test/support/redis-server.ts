import { Redis } from 'ioredis';

import { startRedisProcess } from './redis-process.js';
import { asLimiterUser, expectNothingRefused, LIMITER_USER, limiterRules } from './redis-user.js';

/** A real Redis on this machine. */
export interface RedisServer {
  /** The URL for a service, whose user has few rights. */
  readonly url: string;
  /** The URL without credentials, for the default user. */
  readonly address: string;
  /**
   * Stops it.
   * @throws Error if it has denied a command to a user
   */
  stop(): Promise<void>;
}

/** Starts the Redis that `scripts/lib/find-redis.mjs` has found. */
export async function startRedisServer(): Promise<RedisServer> {
  const { SLUICE_TEST_REDIS_IMAGE: image, SLUICE_TEST_REDIS_SERVER: program } = process.env;
  if (program !== undefined) return startRedisProcess();
  if (image !== undefined) return startContainer(image);
  throw new Error('no Redis to test with: run the tests by `npm test`');
}

async function startContainer(image: string): Promise<RedisServer> {
  // Loaded only here: it takes half a second, for each test file with a Redis of its own.
  const { GenericContainer, Wait } = await import('testcontainers');
  const { username, password } = LIMITER_USER;
  const container = await new GenericContainer(image)
    // Seen from inside its container, the tests are not on the loopback interface.
    .withCommand([
      ...['redis-server', '--protected-mode', 'no', '--save', ''],
      ...['--user', username, 'on', `>${password}`, ...limiterRules()],
    ])
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
    .start();
  const address = `redis://${container.getHost()}:${container.getMappedPort(6379)}`;
  return {
    address,
    url: asLimiterUser(address),
    stop: async () => {
      const client = new Redis(address);
      try {
        await expectNothingRefused((name, ...args) => client.call(name, ...args));
      } finally {
        client.disconnect();
        await container.stop();
      }
    },
  };
}
