interface Details extends ErrorOptions {
  readonly status?: number | undefined;
  readonly code?: string | undefined;
}

/** Sluice rejected a request, for example for its token. Sending it again does not help. */
export class SluiceError extends Error {
  override readonly name: string = 'SluiceError';
  /** The status of the answer; undefined if there was none. */
  readonly status: number | undefined;
  /** Names the error, such as `KEY_FULL`: see the table of errors in the docs. Undefined if there was no answer with one. */
  readonly code: string | undefined;

  constructor(message: string, { status, code, ...options }: Details = {}) {
    super(message, options);
    this.status = status;
    this.code = code;
  }
}

/** Sluice denied what `withPermit` or a limited `fetch` needs to go on. */
export class SluiceDeniedError extends SluiceError {
  override readonly name: string = 'SluiceDeniedError';
  /** The name of the limit that has too little left, if the key has several limits. */
  readonly limit: string | undefined;

  /** @param retryAfterSeconds until the window of the limit ends that has too little left */
  constructor(
    readonly key: string,
    readonly retryAfterSeconds: number,
    limit?: string,
  ) {
    super('rate limit exceeded', { status: 429, code: 'RATE_LIMIT_EXCEEDED' });
    this.limit = limit;
  }
}

/** A permit no longer counts while its work goes on: the reason with which the signal of the work is aborted. */
export class SluicePermitLostError extends SluiceError {
  override readonly name: string = 'SluicePermitLostError';

  /** @param cause why the last renewal failed; undefined if Sluice answered that the permit no longer counts */
  constructor(
    readonly key: string,
    readonly requestId: string,
    cause?: unknown,
  ) {
    const message =
      cause === undefined
        ? 'the permit no longer counts'
        : 'the permit could not be renewed before its hold lapsed';
    super(message, cause === undefined ? {} : { cause });
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
