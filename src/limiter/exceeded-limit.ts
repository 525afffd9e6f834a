import { takenOf, type LimitQuota } from './limits.js';
import type { Quota } from './limiter.js';

/**
 * Returns the limit that denies a check: of the limits that have too little left, the one that has room last; undefined
 * if no limit has too little left, as for a check that may not overtake the queue.
 * @param hits those of the check
 */
export function exceededLimit({ limits }: Quota, hits = 1): LimitQuota | undefined {
  const exceeded = limits.filter((limit) => takenOf(limit, hits) > limit.remaining);
  return exceeded.toSorted((a, b) => b.resetMillis - a.resetMillis)[0];
}

/** Returns the limit whose maximum is less than a check with this number of hits takes. */
export function limitBelow({ limits }: Quota, hits: number): LimitQuota | undefined {
  return limits.find((limit) => takenOf(limit, hits) > limit.maximum);
}
