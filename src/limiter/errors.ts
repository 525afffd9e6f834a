/** The store can't be asked now, or did not answer in time. Passing: the request may be tried again. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';

  constructor(options?: ErrorOptions) {
    super('store unavailable', options);
  }
}

/** This replica stops, and the request's turn had not come. Another replica may be asked. */
export class ShuttingDownError extends Error {
  override readonly name = 'ShuttingDownError';

  constructor() {
    super('shutting down');
  }
}
