import { isDeepStrictEqual } from 'node:util';

/**
 * How the approvals of a limit count.
 * - `fixed_window`: until their window ends. Up to twice the maximum may pass around its end.
 * - `sliding_window`: never more than the maximum in any span of the window, which moves on in `steps`.
 * - `token_bucket`: at an even pace of the maximum per window, and up to `burst` at once.
 */
export type Algorithm =
  | { readonly name: 'fixed_window' }
  | { readonly name: 'sliding_window'; readonly steps: number }
  | { readonly name: 'token_bucket'; readonly burst: number };

export const FIXED_WINDOW: Algorithm = { name: 'fixed_window' };

/** A limit of a key. A check takes from all limits of its key, or from none. */
export interface Limit {
  /**
   * Unique among the limits of its key. Undefined for the key's own limit, which clients know by the name of the rule.
   */
  readonly name?: string | undefined;
  /** Its windows follow back to back from the check that was the first under this limit. */
  readonly windowMillis: number;
  readonly maximum: number;
  readonly algorithm: Algorithm;
  /** Whether an approval counts with its hits, or as one. */
  readonly counts: 'hits' | 'requests';
  /**
   * Whether an approval counts until the window ends in which it was given, and in no other: a release gives nothing
   * back, and a hold does not count in later windows.
   */
  readonly keepsReleased: boolean;
}

/** One value for each limit of a key: the key's own limit first, then the further limits in the order of the rules. */
export type ForEachLimit<Value> = readonly [Value, ...Value[]];

export type Limits = ForEachLimit<Limit>;

/** What a limit has left after a decision. */
export interface LimitQuota extends Limit {
  readonly remaining: number;
  /** Until there is more room: until its window ends, a step of it does, one more hit fits, a hold lapses, or a pause ends. In milliseconds. */
  readonly resetMillis: number;
}

/** A limit as of now. */
export interface LimitState extends Limit {
  /** What the approvals take of it. */
  readonly used: number;
  readonly millisToWindowEnd: number;
}

/** The limit that every key has. It counts hits, and a release gives them back. */
export function ownLimit(
  windowMillis: number,
  maximum: number,
  algorithm: Algorithm = FIXED_WINDOW,
): Limit {
  return {
    name: undefined,
    windowMillis,
    maximum,
    algorithm,
    counts: 'hits',
    keepsReleased: false,
  };
}

/** Whether two limits count by the same algorithm, with the same steps or burst. */
export function isSameAlgorithm(
  one: Pick<Limit, 'algorithm'>,
  other: Pick<Limit, 'algorithm'>,
): boolean {
  // Nearly all limits share one object.
  return one.algorithm === other.algorithm || isDeepStrictEqual(one.algorithm, other.algorithm);
}

/** How much may count of a limit at once. */
export function capacityOf({ maximum, algorithm }: Pick<Limit, 'maximum' | 'algorithm'>): number {
  return algorithm.name === 'token_bucket' ? Math.min(algorithm.burst, maximum) : maximum;
}

/** For how long an approval may count, in milliseconds. */
export function longestCountMillis({ windowMillis, algorithm }: Limit): number {
  // A sliding window ends two of its steps later at most.
  return algorithm.name === 'sliding_window' ? 2 * windowMillis + 2 : windowMillis;
}

/** Returns one value for each limit, in their order. */
export function forEachLimit<From, To>(
  limits: ForEachLimit<From>,
  valueOf: (from: From, index: number) => To,
): ForEachLimit<To> {
  // As long as the limits, so not empty. Taking the first apart would take longer, and each decision has a quota.
  return limits.map(valueOf) as [To, ...To[]];
}

/** How much a check with this number of hits takes of a limit. */
export function takenOf({ counts }: Pick<Limit, 'counts'>, hits: number): number {
  return counts === 'hits' ? hits : 1;
}
