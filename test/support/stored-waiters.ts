import type { Redis } from 'ioredis';

import type { KeyNames } from '../../src/redis/shared/key-names.js';
import { readRecord } from './stored-queue.js';

/** How many requests of a key wait, those of dead replicas included. */
export async function countStoredWaiters(
  client: Redis,
  { records }: Pick<KeyNames, 'records'>,
): Promise<number> {
  return waitersIn(await client.hvals(records));
}

/** How many of these records are of waiters. */
export function waitersIn(records: readonly string[]): number {
  return records.filter((text) => readRecord(text).state === 'waiting').length;
}
