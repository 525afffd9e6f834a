import type { OtherTerm } from './request.js';

/** Why the limiter can't fulfil a request now, with the message for logs. */
const REASONS = {
  store_unavailable: 'store unavailable',
  /** The store has no room for a new key. Existing keys are still decided. */
  store_full: 'store full',
  /** The store keeps no more ids of approvals for the key's window, or no more holds, although the maximum is not reached, or no more groups. */
  key_full: 'too many approvals, holds or groups of the key',
  /** This replica stops before the turn of the request. Another replica may be asked. */
  shutting_down: 'shutting down',
  /** This replica stops, and the place of the request is kept. Another replica may be asked at once. */
  handed_over: 'handed over to another replica',
  /** As many requests as may wait here wait already. Another replica may be asked. */
  too_many_waiters: 'too many waiters on this replica',
} as const;

export type UnavailableReason = keyof typeof REASONS;
export const UNAVAILABLE_REASONS = Object.keys(REASONS) as UnavailableReason[];

/** The limiter can't fulfil a request now. The request may be tried again. */
export class UnavailableError extends Error {
  override readonly name: string = 'UnavailableError';

  constructor(
    readonly reason: UnavailableReason,
    options?: ErrorOptions,
  ) {
    super(REASONS[reason], options);
  }
}

interface StoreFailure extends ErrorOptions {
  /** The store may still have fulfilled the request, or may do so later. */
  readonly mayHaveRun?: boolean;
  /** Settles when the store will not fulfil the request later than it has, as far as can be known. */
  readonly ended?: Promise<unknown> | undefined;
}

/** The store is unreachable, or did not answer in time. */
export class StoreUnavailableError extends UnavailableError {
  override readonly name: string = 'StoreUnavailableError';
  readonly mayHaveRun: boolean;
  readonly ended: Promise<unknown> | undefined;

  constructor(
    { mayHaveRun = false, ended, ...options }: StoreFailure = {},
    reason: 'store_unavailable' | 'store_full' = 'store_unavailable',
  ) {
    super(reason, options);
    this.mayHaveRun = mayHaveRun;
    this.ended = ended;
  }
}

/** The store has no room for a new key. */
export class StoreFullError extends StoreUnavailableError {
  override readonly name = 'StoreFullError';

  constructor(failure: StoreFailure = {}) {
    super(failure, 'store_full');
  }
}

/** Why a check with a request id of its caller's choice can't be decided, or its wait has ended without a decision. */
export type RequestIdConflict =
  /** The request with this id was approved and released, or its hold has lapsed. */
  | 'used'
  /** A later check with this id waits in its place, or has got its approval. */
  | 'taken_over'
  /** A release has withdrawn the place of the request. */
  | 'withdrawn'
  /** The request with this id asks for something else. */
  | OtherTerm;

/** A check says something about a request id that the limiter knows otherwise. */
export class RequestIdConflictError extends Error {
  override readonly name = 'RequestIdConflictError';

  constructor(readonly conflict: RequestIdConflict) {
    super(`request id: ${conflict}`);
  }
}

/** The store does not allow this service to list its keys. Everything else works. */
export class ListingForbiddenError extends Error {
  override readonly name = 'ListingForbiddenError';

  constructor(options: ErrorOptions) {
    super('the store forbids to list its keys', options);
  }
}
