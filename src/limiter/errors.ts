/** The limiter can't fulfil a request now. The request may be tried again. */
export abstract class UnavailableError extends Error {
  abstract readonly reason: UnavailableReason;
}

export type UnavailableReason =
  'store_unavailable' | 'store_full' | 'key_full' | 'shutting_down' | 'too_many_waiters';

interface StoreFailure extends ErrorOptions {
  /** The store may have fulfilled the request all the same, or may do so later. */
  readonly mayHaveRun?: boolean;
}

/** The store can't be asked now, or did not answer in time. */
export class StoreUnavailableError extends UnavailableError {
  override readonly name: string = 'StoreUnavailableError';
  readonly reason: 'store_unavailable' | 'store_full' = 'store_unavailable';
  readonly mayHaveRun: boolean;

  constructor(
    { mayHaveRun = false, ...options }: StoreFailure = {},
    message = 'store unavailable',
  ) {
    super(message, options);
    this.mayHaveRun = mayHaveRun;
  }
}

/** The store has no room for a key that is new. It decides on those that it has. */
export class StoreFullError extends StoreUnavailableError {
  override readonly name = 'StoreFullError';
  override readonly reason = 'store_full';

  constructor(failure: StoreFailure = {}) {
    super(failure, 'store full');
  }
}

/** The store keeps no more ids of approvals for the key's window, although its maximum is not reached. */
export class KeyFullError extends UnavailableError {
  override readonly name = 'KeyFullError';
  readonly reason = 'key_full';

  constructor() {
    super('too many approvals of the key in this window');
  }
}

/** The store does not let this service list its keys. All else goes on. */
export class ListingForbiddenError extends Error {
  override readonly name = 'ListingForbiddenError';

  constructor(options: ErrorOptions) {
    super('the store forbids to list its keys', options);
  }
}

/** This replica stops before the turn of the request. Another replica may be asked. */
export class ShuttingDownError extends UnavailableError {
  override readonly name = 'ShuttingDownError';
  readonly reason = 'shutting_down';

  constructor() {
    super('shutting down');
  }
}

/** The maximum of requests waits here already. Another replica may be asked. */
export class TooManyWaitersError extends UnavailableError {
  override readonly name = 'TooManyWaitersError';
  readonly reason = 'too_many_waiters';

  constructor() {
    super('too many waiters on this replica');
  }
}
