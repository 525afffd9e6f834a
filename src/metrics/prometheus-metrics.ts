import { collectDefaultMetrics, Registry } from 'prom-client';

import type { StoreObserver } from '../redis/store-observer.js';
import { checkMetrics } from './check-metrics.js';
import type { Metrics } from './metrics.js';
import { storeMetrics } from './store-metrics.js';

/**
 * Metrics of this process: of the checks, the calls to Redis, and Node itself. None has a limiter key
 * as a label: there is no end of keys, and Prometheus keeps a series for each.
 * @param waiting how many requests wait here for their turn
 */
export function createMetrics(waiting: () => number): Metrics & StoreObserver {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    ...checkMetrics(registry, waiting),
    ...storeMetrics(registry),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
