import { once } from 'node:events';

import { Redis } from 'ioredis';

import { type RedisServer, startRedisServer } from './redis-server.js';

/** A Redis for one test file, and a client that inspects it. */
export interface RedisForTests {
  /** The URL for a service, whose user has few rights. */
  readonly url: string;
  /** A client of the default user, which may do everything. */
  readonly client: Redis;
}

/**
 * Starts a real Redis before the tests of this file and stops it after them. It must not have denied any command to a
 * user by then.
 */
export function useRedis(): RedisForTests {
  let server: RedisServer | undefined;
  let client: Redis | undefined;

  beforeAll(async () => {
    server = await startRedisServer();
    client = new Redis(server.address);
  });
  afterAll(async () => {
    // A timer of a connection that is ending would keep jest's worker.
    const ended = client?.status === 'ready' && once(client, 'end');
    client?.disconnect();
    await ended;
    await server?.stop();
  });

  const started = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the Redis of this file has not started yet');
    return value;
  };
  return {
    get url() {
      return started(server).url;
    },
    get client() {
      return started(client);
    },
  };
}
