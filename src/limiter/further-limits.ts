import type { Quota } from './limiter.js';

/** A limit that a key has besides its maximum per window. A check takes from all limits of its key, or from none. */
export interface FurtherLimit {
  /** Unique among the limits of its key. */
  readonly name: string;
  /** Its windows follow back to back from the check that was the first under this limit. */
  readonly windowMillis: number;
  readonly maximum: number;
  /** Whether an approval counts with its hits, or as one. */
  readonly counts: 'hits' | 'requests';
  /**
   * Whether an approval counts until the window ends in which it was given, and in no other: a release gives nothing
   * back, and a hold does not count in later windows.
   */
  readonly keepsReleased: boolean;
}

/** What a further limit has left after a decision. */
export interface FurtherQuota extends FurtherLimit {
  readonly remaining: number;
  /** As in `Quota`, of this limit alone. */
  readonly resetMillis: number;
}

/** A further limit as of now. */
export interface FurtherState extends FurtherLimit {
  /** What the approvals take of it. */
  readonly approved: number;
  readonly millisToWindowEnd: number;
}

/** A limit that has too little left for a check. */
export interface ExceededLimit {
  /** Undefined: the key's maximum per window. */
  readonly name: string | undefined;
  readonly maximum: number;
  readonly resetMillis: number;
}

/** How much a check with so many hits takes of a further limit. */
export function takenOf({ counts }: Pick<FurtherLimit, 'counts'>, hits: number): number {
  return counts === 'hits' ? hits : 1;
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
