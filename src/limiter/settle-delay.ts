import { calendarOf, type Limit } from './limits.js';

/** Many keys have windows that end at the same midnight. Their waiters are served within this time after it. */
const SPREAD_MILLIS = 1000;
/** Redis says the time of a reply in whole milliseconds, so the end of a window seems to be earlier by less than this. */
const SAME_MOMENT_MILLIS = 1;

/**
 * Returns how long after there is room the waiters of a key are served if no other call serves them before, in
 * milliseconds. That is 0 unless the window of a calendar ends then. All replicas agree, so the first of them serves the
 * waiters of all.
 * @param roomAt when there is room, in milliseconds since 1970, by the clock of the store
 */
export function settleDelay(key: string, limits: readonly Limit[], roomAt: number): number {
  const isEnd = limits.some((limit) => {
    const end = calendarOf(limit)?.windowAt(roomAt - SAME_MOMENT_MILLIS).end;
    return end !== undefined && Math.abs(end - roomAt) < SAME_MOMENT_MILLIS;
  });
  return isEnd ? hashOf(key) % SPREAD_MILLIS : 0;
}

/** FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/ */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
