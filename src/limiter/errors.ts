/** The limiter can't fulfil a request now. The request may be tried again. */
export abstract class UnavailableError extends Error {
  abstract readonly reason: 'store_unavailable' | 'shutting_down' | 'too_many_waiters';
}

interface StoreFailure extends ErrorOptions {
  /** The store may have fulfilled the request all the same, or may do so later. */
  readonly mayHaveRun?: boolean;
}

/** The store can't be asked now, or did not answer in time. */
export class StoreUnavailableError extends UnavailableError {
  override readonly name = 'StoreUnavailableError';
  readonly reason = 'store_unavailable';
  readonly mayHaveRun: boolean;

  constructor({ mayHaveRun = false, ...options }: StoreFailure = {}) {
    super('store unavailable', options);
    this.mayHaveRun = mayHaveRun;
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
