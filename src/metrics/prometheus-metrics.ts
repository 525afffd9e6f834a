import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

import type { ApprovalObserver } from '../limiter/limiter.js';
import { SCRIPTS } from '../redis/scripts/scripts.js';
import type { WatchedFiles } from '../config/watched-files.js';
import type { StoreObserver } from '../redis/shared/store-observer.js';
import type { Rules } from '../rules/rules.js';
import { checkMetrics, reasonCounter } from './check-metrics.js';

/**
 * Metrics of this process: of the checks, the calls to Redis, and Node itself. No label is a limiter key, because the
 * number of keys is unbounded and Prometheus keeps a series for each.
 * @param waiting the number of requests that wait here for their turn
 * @param rejections how many requests were rejected for their tokens, by reason
 * @param isReady whether requests should come here; asked at each scrape
 */
export function createMetrics(
  waiting: () => number,
  rules: Pick<Rules, 'current' | 'isStale'>,
  tokens: Pick<WatchedFiles<unknown>, 'isStale' | 'isGone'> = { isStale: false, isGone: false },
  rejections: Readonly<Record<string, number>> = {},
  isReady: () => Promise<boolean> = () => Promise.resolve(true),
  log: { readonly dropped: number } = { dropped: 0 },
) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // Replicas with other rules have another digest.
  new Gauge({
    name: 'ratelimit_rules',
    help: 'Number of rules in force, with their digest.',
    labelNames: ['digest'],
    registers: [registry],
    collect() {
      this.reset();
      this.set({ digest: rules.current.digest }, rules.current.rules.length);
    },
  });
  flag(
    registry,
    'ratelimit_rules_stale',
    '1 while the rules file is invalid and the last valid rules are in force.',
    () => rules.isStale,
  );
  new Counter({
    name: 'ratelimit_auth_rejections_total',
    help: 'Requests rejected for their tokens, by reason.',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(rejections)) this.inc({ reason }, count);
    },
  });
  flag(
    registry,
    'ratelimit_tokens_stale',
    '1 while the tokens file is invalid and the last valid tokens are in force.',
    () => tokens.isStale,
  );
  flag(
    registry,
    'ratelimit_tokens_gone',
    '1 while the tokens file is missing or empty and every request is rejected.',
    () => tokens.isGone,
  );
  flag(registry, 'ratelimit_ready', '1 while this replica is ready, as /readyz says.', isReady);
  new Counter({
    name: 'ratelimit_dropped_log_lines_total',
    help: 'Log lines that could not be written.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(log.dropped);
    },
  });
  const ofChecks = checkMetrics(registry, waiting);
  // Of requests, connections and streams beyond the limits of their port.
  const deferred = new Counter({
    name: 'ratelimit_deferred_requests_total',
    help: 'Requests deferred until earlier requests of their connection were answered.',
    registers: [registry],
  });
  const connections = reasonCounter(
    registry,
    'ratelimit_dropped_connections_total',
    'Connections dropped because a limit of their port was reached, by reason.',
    DROP_REASONS,
  );
  const streams = reasonCounter(
    registry,
    'ratelimit_dropped_streams_total',
    'gRPC streams dropped because a limit of their port was reached, by reason.',
    STREAM_DROP_REASONS,
  );
  return {
    ...ofChecks,
    /** One request was deferred, since its connection had as many requests in flight as it may have. */
    requestDeferred: (): void => deferred.inc(),
    connectionDropped: connections.count,
    streamDropped: streams.count,
    ...storeMetrics(registry),
    /** All metrics, in the text format of Prometheus. */
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

/** The counts and measurements of the service, for Prometheus. */
export type Metrics = ReturnType<typeof createMetrics>;

/** A metric that is 1 while something is so, and else 0. It is asked at each scrape. */
function flag(
  registry: Registry,
  name: string,
  help: string,
  isSo: () => boolean | Promise<boolean>,
): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set((await isSo()) ? 1 : 0);
    },
  });
}

/**
 * Why a connection was dropped: its port had as many connections as it may have, its port deferred as many requests as
 * it may, too many bytes of answers were unsent, its client read nothing for too long, its client reset too many
 * gRPC streams, or its first requests were all rejected.
 */
export const DROP_REASONS = [
  'too_many_connections',
  'too_many_deferred',
  'unread_answers',
  'slow_reader',
  'too_many_resets',
  'too_many_rejected',
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Why a gRPC stream was dropped: too large headers, too many streams on its port, or a client that is too slow. */
export const STREAM_DROP_REASONS = ['headers_too_large', 'too_many', 'too_late'] as const;
export type StreamDropReason = (typeof STREAM_DROP_REASONS)[number];

const CALL_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 100];

/** Metrics of the calls to Redis. With the embedded limiter they stay at zero. */
function storeMetrics(registry: Registry): Omit<StoreObserver, keyof ApprovalObserver> {
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
  // These series exist from the start.
  for (const script of Object.keys(SCRIPTS)) durations.zero({ script });
  for (const kind of ['withdrawal', 'settle']) catchUp.set({ kind }, 0);
  for (const kind of ['not_run', 'unknown', 'fault']) errors.inc({ kind }, 0);

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
