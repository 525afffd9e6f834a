import { pino } from 'pino';

import { systemClock } from '../../../src/common/clock.js';
import type { Decision } from '../../../src/limiter/limiter.js';
import { connect, waitUntilReady } from '../../../src/redis/connections/connect.js';
import { RedisLimiter } from '../../../src/redis/redis-limiter.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { requestIdOf } from '../../support/request-id-of.js';
import { unobserved } from '../../support/unguarded.js';
import { uniqueKey } from '../../support/unique-key.js';

const TIMEOUT_MILLIS = 60_000;
const KEYS = 20;

describeWithRedisProgram('checks with hits in a Redis Cluster', () => {
  let cluster: RedisCluster;
  let limiter: RedisLimiter;
  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 0 });
    const logger = pino({ level: 'silent' });
    const connections = connect(
      {
        mode: 'cluster',
        urls: cluster.settings.REDIS_URL.split(','),
        database: 0,
        timeoutMillis: TIMEOUT_MILLIS,
        name: 'test',
      },
      logger,
    );
    await waitUntilReady(connections, TIMEOUT_MILLIS);
    limiter = new RedisLimiter({
      connections,
      rulesLoadedAt: () => 0,
      limitsOf: () => ({ windowMillis: 3_600_000, maxRequests: 5, maxRequestsInQueue: 5 }),
      keyPrefix: 'sluice:',
      replicaId: 'replica',
      leaseMillis: 5_000,
      database: 0,
      timeoutMillis: TIMEOUT_MILLIS,
      maxWaiters: Infinity,
      maxIdsPerKey: 1_000_000,
      maxHoldsPerKey: 100,
      clock: systemClock,
      logger,
      observer: unobserved,
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
      round.map((each) => [each.outcome, 'quota' in each && each.quota?.remaining]),
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
      expect(await limiter.inspect(key)).toMatchObject({ approved: 2 });
    }
  });
});
