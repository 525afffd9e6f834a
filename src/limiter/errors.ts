/** Why the limiter can't fulfil a request now, with the message for logs. */
const REASONS = {
  store_unavailable: 'store unavailable',
  /** The store has no room for a key that is new. It decides on those that it has. */
  store_full: 'store full',
  /** The store keeps no more ids of approvals for the key's window, although its maximum is not reached. */
  key_full: 'too many approvals of the key in this window',
  /** This replica stops before the turn of the request. Another replica may be asked. */
  shutting_down: 'shutting down',
  /** The maximum of requests waits here already. Another replica may be asked. */
  too_many_waiters: 'too many waiters on this replica',
} as const;

export type UnavailableReason = keyof typeof REASONS;

/** The limiter can't fulfil a request now. The request may be tried again. */
export class UnavailableError extends Error {
  override readonly name: string = 'UnavailableError';

  constructor(
    readonly reason: UnavailableReason,
    options?: ErrorOptions,
  ) {
    super(REASONS[reason], options);
  }
}

interface StoreFailure extends ErrorOptions {
  /** The store may have fulfilled the request all the same, or may do so later. */
  readonly mayHaveRun?: boolean;
}

/** The store can't be asked now, or did not answer in time. */
export class StoreUnavailableError extends UnavailableError {
  override readonly name: string = 'StoreUnavailableError';
  readonly mayHaveRun: boolean;

  constructor(
    { mayHaveRun = false, ...options }: StoreFailure = {},
    reason: 'store_unavailable' | 'store_full' = 'store_unavailable',
  ) {
    super(reason, options);
    this.mayHaveRun = mayHaveRun;
  }
}

/** The store has no room for a key that is new. */
export class StoreFullError extends StoreUnavailableError {
  override readonly name = 'StoreFullError';

  constructor(failure: StoreFailure = {}) {
    super(failure, 'store_full');
  }
}

/** The store does not let this service list its keys. All else goes on. */
export class ListingForbiddenError extends Error {
  override readonly name = 'ListingForbiddenError';

  constructor(options: ErrorOptions) {
    super('the store forbids to list its keys', options);
  }
}
