/** A limit of a key. A check takes from all limits of its key, or from none. */
export interface Limit {
  /**
   * Unique among the limits of its key. Undefined for the key's own limit, which clients know by the name of the rule.
   */
  readonly name?: string | undefined;
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

/** One value for each limit of a key: the key's own limit first, then the further limits in the order of the rules. */
export type ForEachLimit<Value> = readonly [Value, ...Value[]];

export type Limits = ForEachLimit<Limit>;

/** What a limit has left after a decision. */
export interface LimitQuota extends Limit {
  readonly remaining: number;
  /** Until there may be room again: until its window ends, a hold lapses, or a pause ends. In milliseconds. */
  readonly resetMillis: number;
}

/** A limit as of now. */
export interface LimitState extends Limit {
  /** What the approvals take of it. */
  readonly used: number;
  readonly millisToWindowEnd: number;
}

/** The limit that every key has. It counts hits, and a release gives them back. */
export function ownLimit(windowMillis: number, maximum: number): Limit {
  return { name: undefined, windowMillis, maximum, counts: 'hits', keepsReleased: false };
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
