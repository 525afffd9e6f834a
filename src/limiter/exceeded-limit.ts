import { takenOf } from './further-limits.js';
import type { Quota } from './limiter.js';

/** A limit that has too little left for a check. */
export interface ExceededLimit {
  /** Undefined: the key's maximum per window. */
  readonly name: string | undefined;
  readonly maximum: number;
  readonly resetMillis: number;
}

/**
 * The limit that denies a check: of those that have too little left, the one that has room last.
 * @param hits those of the check
 * @returns undefined if no limit has too little left, as for a check that may not overtake the queue
 */
export function exceededLimit(quota: Quota, hits = 1): ExceededLimit | undefined {
  const exceeded = limitsOf(quota, hits).filter(({ needed, remaining }) => needed > remaining);
  return exceeded.toSorted((a, b) => b.resetMillis - a.resetMillis)[0];
}

/** The limit whose maximum is less than a check with so many hits takes. */
export function limitBelow(quota: Quota, hits: number): ExceededLimit | undefined {
  return limitsOf(quota, hits).find(({ needed, maximum }) => needed > maximum);
}

interface ComparedLimit extends ExceededLimit {
  readonly remaining: number;
  /** What the check takes. */
  readonly needed: number;
}

function limitsOf(
  { maxRequests: maximum, remaining, resetMillis, further = [] }: Quota,
  hits: number,
): ComparedLimit[] {
  const own = { name: undefined, maximum, remaining, resetMillis, needed: hits };
  return [own, ...further.map((limit) => ({ ...limit, needed: takenOf(limit, hits) }))];
}
