/**
 * A replica notices Redis's return within this time. `lua/lib/recovery.lua` relies on it: a recovery
 * lasts longer, so that the waiters of all replicas can come back.
 */
export const LONGEST_BACKOFF_MILLIS = 250;

/**
 * The wait before the next attempt: twice as long after each failure, up to a quarter of a second.
 * @param failures in a row so far, at least 1
 * @param firstMillis the wait after the first of them
 */
export function backoffMillis(failures: number, firstMillis: number): number {
  return Math.min(firstMillis * 2 ** (failures - 1), LONGEST_BACKOFF_MILLIS);
}
