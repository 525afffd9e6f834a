import { GenericContainer, Wait } from 'testcontainers';

import { startRedisProcess } from './redis-process.js';

/** A real Redis on this machine. */
export interface RedisServer {
  readonly url: string;
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
  const container = await new GenericContainer(image)
    // Seen from inside its container, the tests are not on the loopback interface.
    .withCommand(['redis-server', '--protected-mode', 'no', '--save', ''])
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
    .start();
  return {
    url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    stop: async () => {
      await container.stop();
    },
  };
}
