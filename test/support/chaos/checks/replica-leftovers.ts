import type { Member } from '../fleet.js';
import type { Reading } from '../replica-reading.js';
import { lastWithin } from '../within.js';
import { read } from '../replica-reading.js';

/** Sockets of the last requests, and of scrapes, may be about for a moment, on a busy machine for longer. */
const SETTLED_WITHIN_MILLIS = 60_000;
/** Connections that a topology made necessary, such as to servers that have changed their part. */
const MORE_HANDLES = 6;
/** Code that was compiled meanwhile, caches of the runtime, buffers. */
const MORE_HEAP_BYTES = 6 * 1024 * 1024;

/** What a replica holds on to, compared to what it held when nothing had gone wrong yet. */
export async function replicaLeftovers(
  { index, process }: Member,
  before: Reading,
): Promise<string[]> {
  return lastWithin(
    SETTLED_WITHIN_MILLIS,
    async () => compare(`replica ${index}`, before, await read(process)),
    (violations) => violations.length === 0,
  );
}

export function compare(who: string, before: Reading, after: Reading): string[] {
  const violations: string[] = [];
  if (after.waiting > 0) violations.push(`${who} believes that ${after.waiting} wait`);
  if (after.handles > before.handles + MORE_HANDLES) {
    violations.push(`${who} has ${after.handles} handles after ${before.handles}`);
  }
  if (after.heapBytes > before.heapBytes + MORE_HEAP_BYTES) {
    violations.push(`${who} holds ${after.heapBytes} bytes after ${before.heapBytes}`);
  }
  return violations;
}
