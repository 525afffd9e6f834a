import type { WaitProgress } from './decision.js';

/** How a client reaches Sluice. */
export interface ClientOptions {
  /**
   * The address, such as `http://localhost:8080`. A path in it is put before `/rate`. Of several addresses, the first is
   * asked until it can't be reached or stops, then the next, and after the last the first again.
   */
  readonly url: string | URL | readonly (string | URL)[];
  /** The bearer token. A function is called before each request, so that the token can change. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** The longest time for a check, a release, a renewal or a correction, including retries. 5000 by default. */
  readonly timeoutMillis?: number | undefined;
  /** Returns the `X-Correlation-ID` of a request. A bulk request gets the id of the moment in which it is sent. */
  readonly correlationId?: (() => string | undefined) | undefined;
  /** The most bulk requests in flight at a time. 8 by default. */
  readonly maxCalls?: number | undefined;
  /** How often a request is sent again after a pause, if that is safe. 3 by default. */
  readonly retries?: number | undefined;
  /**
   * Names the holder of approvals that are held, for people who look at a key: 1 to 64 bytes. The host and the id of the
   * process by default. With `false` nobody is named.
   */
  readonly holder?: string | false | undefined;
  /**
   * How long a wait keeps its place in the queue after its connection has ended, up to the service's `MAX_KEEP_MILLIS`.
   * 30,000 by default. With 0, a wait is one request, and its place ends with its connection.
   */
  readonly keepMillis?: number | undefined;
  /** The longest request of a wait that keeps its place, in whole seconds, rounded up. 25,000 by default. */
  readonly longPollMillis?: number | undefined;
  /** Replaces `node:http`. */
  readonly fetch?: typeof fetch | undefined;
}

/** How long one request may take. */
export interface RequestOptions {
  /** Aborting rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Overrides the client's. */
  readonly timeoutMillis?: number | undefined;
}

/** In which list of its key's queue a check is, if the rules of the key have lanes or fair groups. */
export interface ListOptions {
  /** The name of a lane of the key. Its last lane by default. */
  readonly lane?: string | undefined;
  /**
   * The group that shares the key fairly with others, such as a tenant: 1 to 64 bytes. By default the group of all checks
   * that name none.
   */
  readonly group?: string | undefined;
}

/** How to ask for permission. */
export interface AskOptions extends RequestOptions, ListOptions {
  /** How much of the maximum the check takes, all or nothing. 1 by default. */
  readonly hits?: number | undefined;
  /**
   * Holds the approval: it counts in every window until it is released, or until this many milliseconds have passed
   * since the approval or its last renewal. By default an approval counts in its window only.
   */
  readonly holdMillis?: number | undefined;
  /** Overrides the key's approvals per window, from this check on. */
  readonly maxRequests?: number | undefined;
  /** Overrides the places in the key's queue, from this check on. */
  readonly maxRequestsInQueue?: number | undefined;
  /** Overrides the length of the key's windows, from the next one on. */
  readonly windowMillis?: number | undefined;
}

/** How to ask for permission, and be answered at once. */
export interface CheckOptions extends AskOptions {
  /** Sends the check alone, so that the decision has its `quota`. `false` by default. */
  readonly quota?: boolean | undefined;
}

/** How to ask for permission, and to wait for it. */
export interface WaitOptions extends AskOptions {
  /**
   * The longest wait in the queue. The check is denied at once if its turn would come too late, and when the time is
   * over. No limit by default. `timeoutMillis` limits the whole request, and rejects.
   */
  readonly maxWaitMillis?: number | undefined;
  /**
   * Called with the place in the queue once the check waits, and then after each `longPollMillis`. An error that it throws
   * ends the wait.
   */
  readonly onProgress?: ((progress: WaitProgress) => void) | undefined;
}

/** How `permit` and a limited `fetch` ask. */
export interface PermitOptions extends WaitOptions {
  /** Whether to wait if the limit is reached. `true` by default. */
  readonly wait?: boolean | undefined;
}

/** How `withPermit` asks, and for how long it holds. */
export interface WithPermitOptions extends Omit<PermitOptions, 'holdMillis'> {
  /**
   * How long the permit of a worker that has crashed stays taken. Renewed every third of it while the work goes on.
   * 30,000 by default. With `false` nothing is renewed: if the work goes on longer, the permit ends with its window.
   */
  readonly holdMillis?: number | false | undefined;
  /** Called if the release at the end fails. The permit then ends with its hold. By default nobody is told. */
  readonly onReleaseError?: ((error: unknown) => void) | undefined;
}

/** How to ask what a check would get. */
export interface PeekOptions extends RequestOptions, ListOptions {
  /** How much of the maximum the check would take. 1 by default. */
  readonly hits?: number | undefined;
}

/** How to renew a hold. */
export interface RenewOptions extends RequestOptions {
  /** The length of the hold from now on. As before by default. */
  readonly holdMillis?: number | undefined;
}

/** How to pause a key. */
export interface PauseOptions extends RequestOptions {
  /** The group that is paused, if the key has fair groups. The whole key by default. */
  readonly group?: string | undefined;
  /** Whether a pause that is on may end sooner. `true` by default; a program that pauses by itself gives `false`. */
  readonly canShorten?: boolean | undefined;
}

/** How to report how much remains. */
export interface ReportOptions extends RequestOptions {
  /** Until the quota resets, up to 86,400,000. Until the limit's window ends by default. */
  readonly resetMillis?: number | undefined;
  /** The name of a further limit of the key. The key's own limit by default. */
  readonly limit?: string | undefined;
  /**
   * The group that the report is about, if each group has the limit to itself. By default the group of all checks that
   * name none.
   */
  readonly group?: string | undefined;
}

/**
 * The limit of a key that a limited `fetch` reports each number of a vendor to: the name of a further limit, or
 * `default` for the key's own limit. Numbers without a limit are not reported.
 */
export interface ReportedLimits {
  readonly requests?: string | undefined;
  readonly tokens?: string | undefined;
  readonly inputTokens?: string | undefined;
  readonly outputTokens?: string | undefined;
  /**
   * Whether each group has these limits to itself, so that the reports are about the group of the call. `false` by
   * default.
   */
  readonly perGroup?: boolean | undefined;
}

/**
 * Returns the hits that an answer has cost; undefined if the answer does not say. It gets the fields of the answer in JSON,
 * or of all events of a stream: the last value of each that is not null.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- only the caller knows the form
export type HitsOf = (answer: any) => number | undefined;
