import { type RedisServer, startRedisServer } from './redis-server.js';

declare global {
  var sharedRedis: RedisServer | undefined;
}

/** One Redis for all test files that do not break it; each uses keys of its own. */
export default async function setUp(): Promise<void> {
  globalThis.sharedRedis = await startRedisServer();
  process.env.SLUICE_TEST_REDIS_URL = globalThis.sharedRedis.url;
}
