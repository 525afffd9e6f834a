import type { RemainingReport } from '../../limiter.js';
import type { Algorithm, Limit, LimitQuota, LimitState } from '../../limits.js';
import type { Holds } from '../holds.js';
import type { Window } from './window.js';

/**
 * The held approvals of a key. They count in each of its limits that counts their lists, unless the limit keeps what is
 * released.
 */
export interface WithHolds {
  /** Undefined if the key had no hold yet. */
  readonly holds: Holds | undefined;
}

/**
 * A limit of a key, and what counts of it. Each kind of limit is a class behind this interface. The kinds in
 * `lua/limits/` answer the same questions. Times are milliseconds of a clock. A limit of some lanes is asked only about their
 * checks and approvals.
 */
export interface CountedLimit {
  /** The maximum in force. */
  maximum: number;
  /** When the current window, or period of that length, began, and how long it lasts. */
  readonly start: number;
  readonly millis: number;
  /** Until when anything may count that was approved by now. */
  readonly countsUntil: number;
  /** What the approvals take, held ones included if they count here; a whole number. */
  readonly used: number;
  /** The same, not rounded up. */
  readonly exactUsed: number;
  /** What the approvals take that are not held. */
  readonly sum: number;
  /** The lanes whose checks it counts. Undefined: it counts all checks. */
  readonly lanes: Limit['lanes'];
  /** Its kind. */
  readonly algorithm: Algorithm['name'];
  /** Whether it has no room for one hit. */
  readonly isFull: boolean;

  /**
   * When it has more room. Where a kind can say it: when there is room for a number of hits, which the head of the queue
   * needs; without one, when one more hit fits.
   */
  roomAt(hits?: number): number;

  /**
   * Moves on to `now`.
   * @param ofRules the length of the windows by the rules, if requests may set another
   * @returns whether another window, or period, has begun
   */
  roll(now: number, ofRules: number): boolean;

  /**
   * Takes what a vendor says remains, if the limit has fixed windows.
   * @returns whether it has
   */
  report(now: number, report: RemainingReport): boolean;
  /** Something that counted may have been given back. */
  noteGivenBack(): void;

  /** Whether an approval with this number of hits fits. */
  fits(hits: number): boolean;
  /** Whether a waiter fits. One that needs more than the maximum, which was lowered since, gets a window for itself. */
  fitsAlone(hits: number): boolean;
  /** Whether it takes more than the maximum, so that it never fits. */
  isBelow(hits: number): boolean;
  /**
   * Whether no more ids are kept.
   * @param unclaimed how many held approvals will be held no more once they are claimed, so that their ids are kept here
   */
  hasAllIds(isHeld: boolean, unclaimed: number): boolean;

  /**
   * Takes an approval, unless it counts here already.
   * @returns false if there is no memory for its id, so that nothing has changed
   */
  take(id: string, hits: number, isHeld: boolean): boolean;
  /**
   * An approval that was taken as a held one counts from now on as one that is not held, in the window of now. A limit that
   * counts it since it was taken goes on as before.
   * @returns false if there is no memory for its id, so that nothing has changed
   */
  takeHeld(id: string, hits: number): boolean;
  /**
   * Gives back what an approval takes, unless the limit keeps what is released.
   * @param isUnused nobody has got the approval, so that every limit gives it back
   * @returns whether it counted here, other than as a held one
   */
  giveBack(id: string, isUnused: boolean): boolean;
  /**
   * Gives hits back without the approvals that took them. Held approvals count on.
   * @returns how many it has given back; 0 for a limit that counts requests, or keeps what is released. Undefined for one that is no
   *   fixed window
   */
  refund?(hits: number): number;
  /** A denied check takes what is left, if it lacks room. Undefined for a limit that is no fixed window. */
  takeRest?(now: number, hits: number): void;
  /** Returns the part that an approval takes which is not held; undefined if it does not count here. */
  takenBy(id: string): number | undefined;
  /** @returns false if there is no memory for other hits of an approval, so that nothing has changed */
  reserve(id: string, hits: number): boolean;
  /** @returns whether the approval counts here, other than as a held one */
  amend(id: string, hits: number): boolean;

  /**
   * The least time until a check would have its turn, if nothing was given back before; 0 if there is room.
   * @param before how many wait before it, each for one hit at least
   * @param laterMillis the length of the windows after the current one
   * @param laterMaximum their maximum. Undefined: it stays.
   */
  millisToTurn(
    now: number,
    before: number,
    hits: number,
    laterMillis: number,
    laterMaximum?: number,
  ): number;

  /** Whether what counts here can be carried over to the limit of other rules. */
  countsAs(limit: Limit): boolean;
  /** Whether the limit of other rules is of the same kind as well, so that it goes on with what was approved. */
  continuesAs(limit: Limit): boolean;
  /** Takes other rules, under which it continues. All that was approved goes on to count. */
  change(now: number, limit: Limit): void;
  /** Takes a sum that counts in a limit of another kind, without ids. */
  carry(sum: number): void;

  /** The queue is served, perhaps later than there was room. */
  beginServing(): void;
  /** Nobody waits any more. */
  endServing(): void;

  /**
   * Returns a copy that may roll, and take what waiters need. It finds ids in the original, so that it costs little.
   * @param key of the copy
   * @param window of the copy, if it is the key's; otherwise the copy has one of its own
   */
  copy(key: WithHolds, window?: Window): CountedLimit;

  state(now: number): LimitState;
  /** @param pausedUntil -Infinity if the key is not paused */
  quota(now: number, pausedUntil: number): LimitQuota;

  /** Gives back the memory of a window that has ended. Nothing else changes. */
  forgetEnded(now: number): void;
  /** Gives back all memory. */
  clear(): void;
}

/** Whether two limits of one name count the same. */
export function countsAlike(one: Limit, other: Limit): boolean {
  return (
    one.name === other.name &&
    one.counts === other.counts &&
    one.lanes?.join() === other.lanes?.join() &&
    one.keepsReleased === other.keepsReleased
  );
}
