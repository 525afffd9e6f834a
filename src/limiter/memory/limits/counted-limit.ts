import type { Limit, LimitQuota, LimitState } from '../../limits.js';

/**
 * A limit of a key, and what counts of it. Each kind of limit is a class behind this interface. The kinds in
 * `lua/limits/` answer the same questions. Times are milliseconds of a clock.
 */
export interface CountedLimit {
  /** The maximum in force. */
  maximum: number;
  /** When the current window began, and how long it lasts. */
  readonly start: number;
  readonly millis: number;
  readonly end: number;
  /** What the approvals take, held ones included if they count here. */
  readonly used: number;
  /** Whether it has no room for one hit. */
  readonly isFull: boolean;
  /** When it has more room. */
  readonly roomAt: number;

  /**
   * Moves on to the window that holds `now`.
   * @param ofRules the length of its windows by the rules
   * @returns whether that is another window
   */
  roll(now: number, ofRules: number): boolean;

  /** Whether an approval with this number of hits fits. */
  fits(hits: number): boolean;
  /** Whether it takes more than the maximum, so that it never fits. */
  isBelow(hits: number): boolean;
  /** Whether no more ids are kept. */
  hasAllIds(isHeld: boolean): boolean;

  /** @returns false if there is no memory for its id, so that nothing has changed */
  take(id: string, hits: number, isHeld: boolean): boolean;
  /**
   * Gives back what an approval takes, unless the limit keeps what is released.
   * @param isUnused nobody has got the approval, so that every limit gives it back
   * @returns whether it counted here, other than as a held one
   */
  giveBack(id: string, isUnused: boolean): boolean;
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
   */
  millisToTurn(now: number, before: number, hits: number, laterMillis: number): number;

  /** Whether the limit of other rules counts in the same way, so that it goes on with what was approved. */
  continuesAs(limit: Limit): boolean;
  /** Takes other rules. The approvals of the window stay in it. */
  change(now: number, limit: Limit): void;

  state(now: number): LimitState;
  /** @param pausedUntil -Infinity if the key is not paused */
  quota(now: number, pausedUntil: number): LimitQuota;

  /** Gives back the memory of a window that has ended. Nothing else changes. */
  forgetEnded(now: number): void;
  /** Gives back all memory. */
  clear(): void;
}
