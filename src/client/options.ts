/** How a client reaches Sluice. */
export interface ClientOptions {
  /** The address, such as `http://localhost:8080`; one with a path is put before `/rate`. */
  readonly url: string | URL;
  /** The bearer token; a function is asked before each call, so that the token can change. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** The longest a check or a release may take, retry included. 5000 if left out. */
  readonly timeoutMillis?: number | undefined;
  /** The `X-Correlation-ID` of a call; one of many checks has the id of its moment. */
  readonly correlationId?: (() => string | undefined) | undefined;
  /** The most calls of many checks that are under way at a time. 8 if left out. */
  readonly maxCalls?: number | undefined;
  /** In the place of `node:http`. */
  readonly fetch?: typeof fetch | undefined;
}

/** How long one request may take. */
export interface RequestOptions {
  /** Aborting rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** In the place of the client's. */
  readonly timeoutMillis?: number | undefined;
}

/** How to ask for permission. */
export interface CheckOptions extends RequestOptions {
  /** The key's approvals in a window, from this check on. */
  readonly maxRequests?: number | undefined;
  /** The places in the key's queue, from this check on. */
  readonly maxRequestsInQueue?: number | undefined;
}

/** How to ask for permission, and to wait for it. */
export interface WaitOptions extends CheckOptions {
  /**
   * The longest to wait in the queue: denied at once where the turn can't come in time, and when that time is over. As
   * long as it takes if left out. `timeoutMillis` limits the whole call, and rejects.
   */
  readonly maxWaitMillis?: number | undefined;
}

/** How `withPermit` and a limited `fetch` ask. */
export interface PermitOptions extends WaitOptions {
  /** Whether to wait where there is no room. `true` if left out. */
  readonly wait?: boolean | undefined;
}
