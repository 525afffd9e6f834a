import { fileURLToPath } from 'node:url';

import { type Scrape, scrape } from '../support/prometheus-text.js';
import type { ReplicaProcess } from '../support/replica-process.js';
import { until } from '../support/until.js';
import { within } from './within.js';

const COLLECT_GARBAGE = fileURLToPath(new URL('collect-garbage.mjs', import.meta.url));

const COLLECTED_WITHIN_MILLIS = 10_000;

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
  const { url } = replica;
  const before = collections(await scrape(url));
  replica.signal('SIGUSR2');
  const after = await within(COLLECTED_WITHIN_MILLIS, 'a replica to collect garbage', () =>
    until(async () => {
      const metrics = await scrape(url);
      return collections(metrics) > before && metrics;
    }),
  );
  return {
    heapBytes: after.value('nodejs_heap_size_used_bytes'),
    residentBytes: after.value('process_resident_memory_bytes'),
    handles: after.value('nodejs_active_handles_total'),
    waiting: after.value('ratelimit_waiting'),
    eventLoopLagP99Millis: after.value('nodejs_eventloop_lag_p99_seconds') * 1000,
  };
}

/** The major garbage collections so far. */
function collections({ series }: Scrape): number {
  const counts = series.filter(
    ({ name, labels }) => name === 'nodejs_gc_duration_seconds_count' && labels.kind === 'major',
  );
  return counts.reduce((sum, { value }) => sum + value, 0);
}
