/** What is left of a limit, as of the decision. */
export interface Quota {
  /** The name of the rule or of the further limit; `default` without a rule. */
  readonly name: string;
  /** How much each window allows. */
  readonly limit: number;
  readonly remaining: number;
  /** Until there may be room again. Rounded up. */
  readonly resetSeconds: number;
  /** The length of the windows, if it is a whole number of seconds. */
  readonly windowSeconds?: number;
}

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
  /**
   * What is left: of the key's own limit first, then of its further limits. Only waits, and checks with `quota: true`,
   * have it.
   */
  readonly quota?: readonly Quota[];
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
  /** As of an approval. */
  readonly quota?: readonly Quota[];
}

/** What a check would get now. */
export interface Peek {
  /** Whether it would be approved. */
  readonly allowed: boolean;
  /**
   * The least time until the turn of a check that joined the queue now; 0 if a check would be approved. Rounded up to whole
   * milliseconds.
   */
  readonly waitMillis: number;
  /** As of a denial. */
  readonly limit?: string;
  /** What is left now. */
  readonly quota?: readonly Quota[];
}

/** The place of a wait in the queue of its key. */
export interface WaitProgress {
  /** 1 is next. Exact while at most 1,000 waiters are before it. */
  readonly position: number;
  /** The least time until its turn if nothing is released before. */
  readonly waitMillis: number;
}

/** What a request is now. */
export type RequestStatus =
  | (WaitProgress & { readonly status: 'waiting' })
  | {
      readonly status: 'approved';
      /** Milliseconds until its hold lapses; undefined if it is not held. */
      readonly holdMillis?: number;
    };

/** The decision on a check. */
export type Decision = Approval | Denial;
