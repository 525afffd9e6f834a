import type { Decision } from '../../../src/limiter/limiter.js';
import type { RedisLimiter } from '../../../src/redis/redis-limiter.js';
import { limiterInCluster } from '../../support/cluster-limiter.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { requestIdOf } from '../../support/request-id-of.js';
import { uniqueKey } from '../../support/unique-key.js';

const KEYS = 20;

describeWithRedisProgram('checks with hits in a Redis Cluster', () => {
  let cluster: RedisCluster;
  let limiter: RedisLimiter;
  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 0 });
    limiter = await limiterInCluster(cluster, {
      windowMillis: 3_600_000,
      maxRequests: 5,
      maxRequestsInQueue: 5,
    });
  });
  afterAll(async () => {
    await limiter.close();
    await cluster.stop();
  });

  test('take all hits or none, and are given back, on every shard', async () => {
    const keys = Array.from({ length: KEYS }, uniqueKey);
    const rounds: Decision[][] = [];
    for (const hits of [3, 1, 2, 1]) {
      const checks = keys.map((key) => limiter.check({ key, canWait: false, hits }));
      rounds.push(await Promise.all(checks));
    }
    const remaining = rounds.map((round) =>
      round.map((each) => [each.outcome, 'quota' in each && each.quota?.limits[0].remaining]),
    );
    expect(remaining).toEqual(
      [
        ['approved', 2],
        ['approved', 1],
        ['denied', 1],
        ['approved', 0],
      ].map((each) => Array<unknown>(KEYS).fill(each)),
    );
    for (const [i, key] of keys.entries()) {
      expect(await limiter.release(key, requestIdOf(rounds[0]![i]!))).toBe(true);
      expect(await limiter.inspect(key)).toMatchObject({ limits: [{ used: 2 }] });
    }
  });
});
