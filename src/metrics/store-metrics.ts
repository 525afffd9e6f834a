import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

import type { ApprovalObserver } from '../limiter/limiter.js';
import type { StoreObserver } from '../redis/shared/store-observer.js';

const CALL_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 100];

/** The scripts and the outcomes of a call. Their series exist from the start. */
const SCRIPTS = [
  'check',
  'settle',
  'renew',
  'release',
  'amend',
  'pause',
  'remaining',
  'refund',
  'withdraw',
  'confirm',
  'inspect',
  'examine',
  'holders',
  'peek',
  'status',
  'report',
];
const CATCH_UP_KINDS = ['withdrawal', 'settle'] as const;
const ERROR_KINDS = ['not_run', 'unknown', 'fault'] as const;

/** Metrics of the calls to Redis. With the embedded limiter they stay at zero. */
export function storeMetrics(registry: Registry): Omit<StoreObserver, keyof ApprovalObserver> {
  const registers = [registry];
  const durations = new Histogram({
    name: 'ratelimit_store_duration_seconds',
    help: 'Duration of a script call to Redis as this replica sees it, failed calls included.',
    labelNames: ['script'],
    buckets: CALL_BUCKETS_SECONDS,
    registers,
  });
  const errors = new Counter({
    name: 'ratelimit_store_errors_total',
    help: 'Failed script calls: they did not run, may have run (unknown), or were invalid (fault).',
    labelNames: ['kind'],
    registers,
  });
  const breakers = new Gauge({
    name: 'ratelimit_store_breakers_open',
    help: 'Redis shards that are known to be down and get no calls.',
    registers,
  });
  const catchUp = new Gauge({
    name: 'ratelimit_store_catch_up_pending',
    help: 'Work left by an outage: request ids to withdraw (withdrawal), keys with waiters to settle (settle).',
    labelNames: ['kind'],
    registers,
  });
  const batchSizes = new Histogram({
    name: 'ratelimit_check_batch_size',
    help: 'Checks sent to Redis in one call.',
    buckets: BATCH_BUCKETS,
    registers,
  });
  for (const script of SCRIPTS) durations.zero({ script });
  for (const kind of CATCH_UP_KINDS) catchUp.set({ kind }, 0);
  for (const kind of ERROR_KINDS) errors.inc({ kind }, 0);

  return {
    called: (script, seconds, outcome) => {
      durations.observe({ script }, seconds);
      if (outcome !== 'ok') errors.inc({ kind: outcome });
    },
    batched: (checks) => batchSizes.observe(checks),
    breakersOpen: (count) => breakers.set(count),
    catchingUp: (kind, undone) => catchUp.set({ kind }, undone),
  };
}
