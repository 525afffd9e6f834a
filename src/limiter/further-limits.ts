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

/** How much a check with so many hits takes of a further limit. */
export function takenOf({ counts }: Pick<FurtherLimit, 'counts'>, hits: number): number {
  return counts === 'hits' ? hits : 1;
}
