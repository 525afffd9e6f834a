import { pino } from 'pino';

import { systemClock } from '../../src/common/clock.js';
import { connect, waitUntilReady } from '../../src/redis/connections/connect.js';
import { RedisLimiter } from '../../src/redis/redis-limiter.js';
import { type DeclaredLimits, keyLimits } from './limits.js';
import type { RedisCluster } from './redis-cluster.js';
import { unobserved } from './unguarded.js';

/** So long that a short hang of the machine does not look like an outage. */
const TIMEOUT_MILLIS = 60_000;

/** Starts a limiter in this process that keeps its state in a Redis Cluster. Calls of one tick are sent together. */
export async function limiterInCluster(
  cluster: RedisCluster,
  limits: DeclaredLimits,
): Promise<RedisLimiter> {
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
  return new RedisLimiter({
    connections,
    rulesLoadedAt: () => 0,
    limitsOf: () => keyLimits(limits),
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
}
