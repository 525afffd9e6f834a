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
  /**
   * Until the window of the limit ends that has too little left, or until the turn of a check whose wait would be too
   * long. Rounded up.
   */
  readonly retryAfterSeconds: number;
  /** The name of the limit that has too little left, if the key has several limits. */
  readonly limit?: string;
}

/** The decision on a check. */
export type Decision = Approval | Denial;
