/** Sluice approves the check. */
export interface Approval {
  readonly approved: true;
  /** To release it with. */
  readonly requestId: string;
  /**
   * Set if nothing counts the approval, since a shadow rule let the check pass, or the outage policy `allow`. It can't be
   * released, corrected or renewed.
   */
  readonly uncounted?: true;
}

/** Sluice denies the check. */
export interface Denial {
  readonly approved: false;
  /** Until the key's window ends, or until the turn of a check whose wait would be too long. Rounded up. */
  readonly retryAfterSeconds: number;
}

/** The decision on a check. */
export type Decision = Approval | Denial;
