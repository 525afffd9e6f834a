import { capacityOf, takenOf, type LimitQuota } from './limits.js';
import type { Quota } from './limiter.js';

/**
 * Returns the limit that denies a check: of the limits that have too little left, the one that has room last; undefined
 * if no limit has too little left, as for a check that may not overtake the queue.
 * @param hits those of the check
 */
export function exceededLimit({ limits }: Quota, hits = 1): LimitQuota | undefined {
  const exceeded = limits.filter((limit) => takenOf(limit, hits) > limit.remaining);
  return exceeded.toSorted((a, b) => millisToFit(b, hits) - millisToFit(a, hits))[0];
}

/**
 * Returns when a limit that has too little left for a check may have room for it, in milliseconds from now on. A token
 * bucket drains evenly from the time on at which it has room for one more hit.
 * @param hits those of the check
 */
export function millisToFit(limit: LimitQuota, hits = 1): number {
  const { algorithm, maximum, windowMillis, remaining, resetMillis } = limit;
  if (algorithm.name !== 'token_bucket') return resetMillis;
  // More hits than the burst never fit.
  const missing = Math.min(takenOf(limit, hits), capacityOf(limit)) - remaining - 1;
  if (missing <= 0) return resetMillis;
  return resetMillis + (missing * windowMillis) / maximum;
}

/** Returns the limit of which a check with this number of hits takes more than may ever count at once. */
export function limitBelow({ limits }: Quota, hits: number): LimitQuota | undefined {
  return limits.find((limit) => takenOf(limit, hits) > capacityOf(limit));
}
