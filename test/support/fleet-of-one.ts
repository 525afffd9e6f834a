import type { Limiter } from '../../src/limiter/limiter.js';
import type { Metrics } from '../../src/metrics/prometheus-metrics.js';
import type { RecentDenials } from '../../src/service/deciding/recent-denials.js';
import { Fleet } from '../../src/service/fleet/fleet.js';
import type { CountedKeys } from '../../src/service/fleet/counted-keys.js';

/** The fleet of a single replica. */
export function fleetOf(
  metrics: Pick<Metrics, 'decisionTotals'>,
  limiter: Pick<Limiter, 'waiting'>,
  recentDenials: RecentDenials,
  countedKeys: CountedKeys,
): Fleet {
  return new Fleet({
    report: async () => ({
      replica: 'replica',
      uptimeMillis: performance.now(),
      decisions: await metrics.decisionTotals(),
      waiting: limiter.waiting(),
      rules: 'none',
      denied: recentDenials.all(),
      activity: countedKeys.activity(),
    }),
    countedKeys,
  });
}
