interface Details extends ErrorOptions {
  readonly status?: number | undefined;
}

/** Sluice rejected a request, for example for its token. Sending it again does not help. */
export class SluiceError extends Error {
  override readonly name: string = 'SluiceError';
  /** The status of the answer; undefined if there was none. */
  readonly status: number | undefined;

  constructor(message: string, { status, ...options }: Details = {}) {
    super(message, options);
    this.status = status;
  }
}

/** Sluice denied what `withPermit` or a limited `fetch` needs to go on. */
export class SluiceDeniedError extends SluiceError {
  override readonly name: string = 'SluiceDeniedError';
  readonly key: string;
  /** Until the key's window ends. */
  readonly retryAfterSeconds: number;

  constructor(key: string, retryAfterSeconds: number) {
    super('rate limit exceeded', { status: 429 });
    this.key = key;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

interface UnavailableDetails extends Details {
  readonly mayHaveCounted: boolean;
  readonly retryAfterSeconds?: number | undefined;
}

/** There is no decision: Sluice is unreachable, its answer was lost, or it can't decide now. */
export class SluiceUnavailableError extends SluiceError {
  override readonly name: string = 'SluiceUnavailableError';
  /** Whether the request may still have taken effect. */
  readonly mayHaveCounted: boolean;
  /** When Sluice asks the client to try again, if it does. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    { mayHaveCounted, retryAfterSeconds, ...details }: UnavailableDetails,
  ) {
    super(message, details);
    this.mayHaveCounted = mayHaveCounted;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** There was no decision within `timeoutMillis`. */
export class SluiceTimeoutError extends SluiceUnavailableError {
  override readonly name: string = 'SluiceTimeoutError';
}
