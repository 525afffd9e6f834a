import type { CallerPresence } from './caller-presence.js';

/** The limits that hold for a key nobody has overridden. */
export interface Limits {
  readonly windowMillis: number;
  readonly maxRequests: number;
  readonly maxRequestsInQueue: number;
}

/** One request for permission. An override that is left out changes nothing. */
export interface CheckRequest {
  readonly key: string;
  readonly canWait: boolean;
  readonly maxRequests?: number | undefined;
  readonly maxRequestsInQueue?: number | undefined;
}

/** Who decides while the store can't be asked: nobody, so that all is approved, or this replica alone. */
export type OutagePolicy = 'allow' | 'local';

export type Decision =
  | {
      readonly outcome: 'approved';
      readonly requestId: string;
      /** It had to wait for its turn. */
      readonly waited?: true;
      /** What decided it in the store's place. */
      readonly policy?: OutagePolicy;
    }
  | {
      readonly outcome: 'denied';
      readonly reason: 'limit_reached' | 'queue_full';
      /** Milliseconds until the window ends. */
      readonly retryAfterMillis: number;
      /** What decided it in the store's place. */
      readonly policy?: OutagePolicy;
    }
  /** The caller disconnected while it waited; its place was withdrawn, or the approval that crossed it. */
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
   * @param caller heeded by requests that can wait
   * @throws ShuttingDownError when the replica stops while the request waits, or has stopped
   * @throws TooManyWaitersError when the request can wait and too many do; the store is not asked then
   */
  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision>;

  /**
   * Releases an approval of the current window; the head of the queue gets it.
   * @returns false where the id is unknown, was released before, or its window has ended
   */
  release(key: string, requestId: string): Promise<boolean>;

  /** @returns undefined where no such key exists */
  inspect(key: string): Promise<InstanceState | undefined>;

  /**
   * Every key, in no order and in pages. A key that comes or goes meanwhile may be left out, and one
   * may come twice: to remember which have come would take memory for each of them.
   */
  list(): AsyncIterable<readonly InstanceState[]>;

  /** Resolves when the store has answered. */
  ping(): Promise<void>;

  /** How many requests wait here for their turn. */
  readonly waiting: number;

  /** Withdraws those who wait with a {@link ShuttingDownError}, and leaves nothing behind. */
  close(): Promise<void>;
}

/** A limiter whose store may be away, wholly or for some keys. */
export interface StoreLimiter extends Limiter {
  /** False while the store is known to be down for this key, and is not asked. */
  isAvailable(key: string): boolean;
  /** Calls back when that has changed for some keys. */
  onAvailabilityChange(listener: () => void): void;
}
