/** The limiter can't do now what it is asked. Passing: the request may be tried again. */
export abstract class UnavailableError extends Error {
  abstract readonly reason: 'store_unavailable' | 'shutting_down' | 'too_many_waiters';
}

interface StoreFailure extends ErrorOptions {
  /** What was asked may have been done all the same, or may be done yet. */
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

/** This replica stops, and the request's turn had not come. Another replica may be asked. */
export class ShuttingDownError extends UnavailableError {
  override readonly name = 'ShuttingDownError';
  readonly reason = 'shutting_down';

  constructor() {
    super('shutting down');
  }
}

/** As many requests wait here as may. Another replica may be asked. */
export class TooManyWaitersError extends UnavailableError {
  override readonly name = 'TooManyWaitersError';
  readonly reason = 'too_many_waiters';

  constructor() {
    super('too many waiters on this replica');
  }
}
