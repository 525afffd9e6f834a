/** Sluice lets the caller go on. */
export interface Approval {
  readonly approved: true;
  /** To release it with. */
  readonly requestId: string;
}

/** Sluice turns the caller away. */
export interface Denial {
  readonly approved: false;
  /** Until the key's window ends, or until the turn of one that could not wait so long. Rounded up. */
  readonly retryAfterSeconds: number;
}

/** What Sluice says to a check. */
export type Decision = Approval | Denial;
