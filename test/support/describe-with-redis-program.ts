import { redisProgram, stopRedisProcesses } from './redis-process.js';

/**
 * `describe` for tests that need servers as processes of this machine, for signals or for clusters.
 * The servers that they started end after them. Skipped if there is no `redis-server`, which
 * `scripts/lib/find-redis.mjs` announces.
 */
export function describeWithRedisProgram(title: string, tests: () => void): void {
  if (redisProgram() === undefined) {
    describe.skip(title, tests);
    return;
  }
  describe(title, () => {
    tests();
    afterAll(stopRedisProcesses);
  });
}
