import type { CallerPresence } from './caller-presence.js';

/** The limits of a key without overrides. */
export interface Limits {
  readonly windowMillis: number;
  readonly maxRequests: number;
  readonly maxRequestsInQueue: number;
}

/** The limits of each key, as of now. One object for as long as they stay the same. */
export type LimitsOf = (key: string) => Limits;

/** One request for permission. An override that is left out changes nothing. */
export interface CheckRequest {
  readonly key: string;
  readonly canWait: boolean;
  readonly maxRequests?: number | undefined;
  readonly maxRequestsInQueue?: number | undefined;
}

/** While the store can't be asked, `allow` approves everything, and `local` has this replica decide alone. */
export type OutagePolicy = 'allow' | 'local';

export type Decision =
  | {
      readonly outcome: 'approved';
      readonly requestId: string;
      /** Set if the request had to wait for its turn. */
      readonly waited?: true;
      /** Set if a substitute decided in place of the store. */
      readonly policy?: OutagePolicy;
    }
  | {
      readonly outcome: 'denied';
      readonly reason: 'limit_reached' | 'queue_full';
      /** Milliseconds until the window ends. */
      readonly retryAfterMillis: number;
      /** Set if a substitute decided in place of the store. */
      readonly policy?: OutagePolicy;
    }
  /** The caller disconnected while it waited. Its place was withdrawn, or its approval released. */
  | { readonly outcome: 'withdrawn' };

/** A key's state as of now. */
export interface InstanceState {
  readonly key: string;
  readonly limits: Limits;
  readonly approved: number;
  readonly denied: number;
  readonly waiting: number;
}

/**
 * A rate limiter: exact fixed windows and a FIFO queue for each key.
 *
 * Every method but `close` may reject with a {@link StoreUnavailableError}; a refusal is a
 * {@link Decision}, never an error.
 */
export interface Limiter {
  /**
   * Asks for permission. With `canWait` the promise resolves when the request's turn has come.
   * @param caller its disconnect withdraws a request that can wait
   * @throws ShuttingDownError when the replica stops while the request waits, or has stopped
   * @throws TooManyWaitersError when the request can wait, but too many wait already; the store is not asked
   */
  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision>;

  /**
   * Releases an approval of the current window. The head of the queue gets it.
   * @returns false where the id is unknown, was released before, or its window has ended
   */
  release(key: string, requestId: string): Promise<boolean>;

  /** @returns undefined where no such key exists */
  inspect(key: string): Promise<InstanceState | undefined>;

  /**
   * Every key, in no order and in pages. A key that is made or removed meanwhile may be missing. A key may
   * appear twice: a memory of those that have appeared would grow with each.
   */
  list(): AsyncIterable<readonly InstanceState[]>;

  /** Resolves when the store has answered. */
  ping(): Promise<void>;

  /** The number of requests that wait here for their turn. */
  readonly waiting: number;

  /** Rejects the requests that wait with a {@link ShuttingDownError}, and frees all resources. */
  close(): Promise<void>;
}

/** A limiter whose store may be away, wholly or for some keys. */
export interface StoreLimiter extends Limiter {
  /** False while the store is known to be down for this key. It is not asked then. */
  isAvailable(key: string): boolean;
  /** Calls back when that has changed for some keys. */
  onAvailabilityChange(listener: () => void): void;
}
