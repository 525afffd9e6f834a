import { scrape } from '../prometheus-text.js';
import type { ReplicaProcess } from '../replica-process.js';
import { until } from '../until.js';
import { within } from './within.js';

const COLLECT_GARBAGE = new URL('collect-garbage.mjs', import.meta.url).href;

const COLLECTED_WITHIN_MILLIS = 60_000;

/** For replicas that are to be read. */
export const READABLE = { NODE_OPTIONS: `--expose-gc --import ${COLLECT_GARBAGE}` };

/** What a replica holds, by its own metrics. */
export interface Reading {
  readonly heapBytes: number;
  readonly residentBytes: number;
  readonly handles: number;
  readonly waiting: number;
  readonly eventLoopLagP99Millis: number;
}

/** Reads a replica after a garbage collection. */
export async function read(replica: ReplicaProcess): Promise<Reading> {
  const before = collections(replica);
  replica.signal('SIGUSR2');
  await within(COLLECTED_WITHIN_MILLIS, 'a replica to collect garbage', () =>
    until(() => collections(replica) > before),
  );
  const after = await scrape(replica.url);
  return {
    heapBytes: after.value('nodejs_heap_size_used_bytes'),
    residentBytes: after.value('process_resident_memory_bytes'),
    handles: after.value('nodejs_active_handles_total'),
    waiting: after.value('ratelimit_waiting'),
    eventLoopLagP99Millis: after.value('nodejs_eventloop_lag_p99_seconds') * 1000,
  };
}

/**
 * How often it has collected garbage because it was told to. Its metrics don't know: prom-client counts one
 * of the collections that Node tells it of together, so a major one may be missing.
 */
function collections({ log }: ReplicaProcess): number {
  return log.filter(({ msg }) => msg === 'garbage collected').length;
}
