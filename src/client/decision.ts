/** Sluice approves the check. */
export interface Approval {
  readonly approved: true;
  /** To release it with. */
  readonly requestId: string;
}

/** Sluice denies the check. */
export interface Denial {
  readonly approved: false;
  /** Until the key's window ends, or until the turn of a check whose wait would be too long. Rounded up. */
  readonly retryAfterSeconds: number;
}

/** The decision on a check. */
export type Decision = Approval | Denial;
