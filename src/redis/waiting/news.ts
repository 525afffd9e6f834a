import type { Quota } from '../../limiter/limiter.js';
import type { Waiter } from '../../limiter/waiter.js';
import type { QueueNews } from '../scripts/check-codec.js';
import { limitsIn, quotaIn } from '../scripts/limits-codec.js';
import type { KnownWindow, SettleReply } from '../scripts/settle-codec.js';
import type { Wake } from './wake-channel.js';
import type { Heard } from './wake-numbers.js';

/** Redis says when a message was made in whole milliseconds, so two names of one moment differ by less than this. */
const SAME_MOMENT_MILLIS = 1;

/** What Redis tells of a queue. */
export type News = Wake | SettleReply;

/** What the limits have left after these approvals; undefined if Redis knows no such key. */
export function quotaOf({ limits, used, millisToRoom }: News): Quota | undefined {
  if (millisToRoom === undefined) return undefined;
  return quotaIn(limitsIn(limits).limits, used, millisToRoom);
}

/** Until when the approval of a waiter surely counts, by this replica's clock. Infinite if it is not held. */
export type HeldUntil = (waiter: Waiter) => number;

/**
 * @param wokenAt when the wake came, by this replica's clock
 * @param storeTime Redis's time then, or a later one; undefined if it is unknown
 */
export function heldUntilByWake(
  { at }: Wake,
  wokenAt: number,
  storeTime: number | undefined,
): HeldUntil {
  return ({ holdMillis }) => {
    if (holdMillis === undefined) return Infinity;
    if (storeTime === undefined) return -Infinity;
    return wokenAt + at + holdMillis - storeTime;
  };
}

/** @param sentAt when Redis was asked, by this replica's clock */
export function heldUntilByReply({ holdsLeft }: SettleReply, sentAt: number): HeldUntil {
  return ({ claimOrId: claim, holdMillis = Infinity }) =>
    sentAt + (holdsLeft.get(claim) ?? holdMillis);
}

/** What Redis has said last of a key with waiters, in whatever order its messages come. */
export class LastNews {
  readonly timing: WindowTiming;
  /** The limits in force, as Redis wrote them last. After a loss of its memory, it gets them from here. */
  #limits = '';
  #isQueueEmpty = false;

  /**
   * @param windowMillis the length of the key's windows by this replica's rules, as of now
   * @param graceMillis see {@link WindowTiming}
   * @param delayMillis see {@link WindowTiming}
   */
  constructor(
    windowMillis: () => number,
    graceMillis: number,
    delayMillis: (storeRoomAt: number) => number,
  ) {
    this.timing = new WindowTiming(
      () => (this.#limits === '' ? windowMillis() : limitsIn(this.#limits).limits[0].windowMillis),
      graceMillis,
      delayMillis,
    );
  }

  /** Whether nobody waits on any replica, so that no window leader is needed. */
  get isQueueEmpty(): boolean {
    return this.#isQueueEmpty;
  }

  /** What Redis gets of a key that it may have lost. */
  window(now: number): KnownWindow {
    return { millisLeft: this.timing.millisToRoom(now), limits: this.#limits };
  }

  /** A check was answered with a ticket. */
  ticketed(now: number, heard: Heard, millisToRoom: number, { at, limits }: QueueNews): void {
    this.#isQueueEmpty = false;
    if (heard !== 'late') this.#limits = limits;
    this.#learnRoom(now, heard, at, millisToRoom);
  }

  /** @param hasTickets whether anybody here has one: then the timing of a lost window is needed to create the key again */
  learn(now: number, heard: Heard, news: News, hasTickets: boolean): void {
    const { at, millisToRoom, waiting, limits } = news;
    if (millisToRoom !== undefined) this.#learnRoom(now, heard, at, millisToRoom);
    else if (!hasTickets) this.timing.forget(now);
    if (heard === 'late') return;
    this.#isQueueEmpty = waiting === 0;
    // A key that Redis does not know has none. Redis has to get the earlier ones.
    if (limits) this.#limits = limits;
  }

  #learnRoom(now: number, heard: Heard, at: number, millisToRoom: number): void {
    if (heard === 'late') this.timing.learnLate(now, millisToRoom);
    else this.timing.learn(now, at, millisToRoom);
  }
}

/**
 * When there will be room for waiters, as far as a replica knows: at the end of the window, or sooner if
 * Redis says so. Times are a clock's milliseconds.
 */
export class WindowTiming {
  #roomAt = 0;
  /** The same by Redis's clock; undefined if that is not known. */
  #storeRoomAt: number | undefined;

  /**
   * @param windowMillis the length of a window
   * @param graceMillis how long a replica that is not the window leader waits for its wake
   * @param delayMillis how long after there is room a settle is due, by that time of Redis's clock
   */
  constructor(
    private readonly windowMillis: () => number,
    private readonly graceMillis: number,
    private readonly delayMillis: (storeRoomAt: number) => number,
  ) {}

  /**
   * Learns from a reply or a message of Redis, which is newer than all before. Each is late by its time on the way, so of
   * two that name the same moment the earlier end is the more exact. Once that has come, it was too early.
   * @param at when it was made, by Redis's clock
   */
  learn(now: number, at: number, millisToRoom: number): void {
    const storeRoomAt = at + millisToRoom;
    const isSameMoment =
      this.#storeRoomAt !== undefined &&
      Math.abs(storeRoomAt - this.#storeRoomAt) < SAME_MOMENT_MILLIS;
    const roomAt = now + millisToRoom;
    this.#roomAt = isSameMoment && now < this.#roomAt ? Math.min(roomAt, this.#roomAt) : roomAt;
    this.#storeRoomAt = storeRoomAt;
  }

  /** Learns from a message that may be older than what is known. If it is, a settle that is too early finds out. */
  learnLate(now: number, millisToRoom: number): void {
    const roomAt = now + millisToRoom;
    if (roomAt >= this.#roomAt && now < this.#roomAt) return;
    this.#roomAt = roomAt;
    this.#storeRoomAt = undefined;
  }

  /** No window is known. The next settle is due when a window would have passed. */
  forget(now: number): void {
    this.#roomAt = now + this.windowMillis();
    this.#storeRoomAt = undefined;
  }

  /** When there will be room, as far as is known; a time in the past if there is room now. */
  get roomAt(): number {
    return this.#roomAt;
  }

  /** Whole milliseconds until there is room; below 0 after that time. */
  millisToRoom(now: number): number {
    return Math.round(this.#roomAt - now);
  }

  /** When to settle if no wake has come by then. */
  dueAt(isLeading: boolean): number {
    const delay = this.#storeRoomAt === undefined ? 0 : this.delayMillis(this.#storeRoomAt);
    return this.#roomAt + delay + (isLeading ? 0 : this.graceMillis);
  }
}
