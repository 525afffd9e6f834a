import { collectDefaultMetrics, Registry } from 'prom-client';

import type { StoreObserver } from '../redis/shared/store-observer.js';
import { authMetrics, type AuthState } from './auth-metrics.js';
import { checkMetrics } from './check-metrics.js';
import { connectionMetrics } from './connection-metrics.js';
import { flag } from './flag.js';
import { type LogState, logMetrics } from './log-metrics.js';
import type { Metrics } from './metrics.js';
import { ruleMetrics, type RulesInForce } from './rule-metrics.js';
import { storeMetrics } from './store-metrics.js';

/**
 * Metrics of this process: of the checks, the calls to Redis, and Node itself. No label is a limiter key, because the
 * number of keys is unbounded and Prometheus keeps a series for each.
 * @param waiting the number of requests that wait here for their turn
 * @param isReady whether requests should come here; asked at each scrape
 */
export function createMetrics(
  waiting: () => number,
  rules: RulesInForce,
  auth: AuthState = { isStale: false, isGone: false, rejections: {} },
  isReady: () => Promise<boolean> = () => Promise.resolve(true),
  log: LogState = { dropped: 0 },
): Metrics & StoreObserver {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  ruleMetrics(registry, rules);
  authMetrics(registry, auth);
  flag(registry, 'ratelimit_ready', '1 while this replica is ready, as /readyz says.', isReady);
  logMetrics(registry, log);
  return {
    ...checkMetrics(registry, waiting),
    ...connectionMetrics(registry),
    ...storeMetrics(registry),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
