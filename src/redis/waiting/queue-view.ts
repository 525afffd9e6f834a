import type { Quota } from '../../limiter/limiter.js';
import type { Waiter } from '../../limiter/waiter.js';
import { limitsIn, quotasIn } from '../scripts/limits-codec.js';
import type { KnownWindow, SettleReply } from '../scripts/settle-codec.js';
import type { Wake } from './wake-channel.js';
import type { Heard } from './wake-numbers.js';

/** Redis says when a message was made in whole milliseconds, so two names of one moment differ by less than this. */
const SAME_MOMENT_MILLIS = 1;

/** What Redis tells of a queue and of its waiters. */
export type QueueUpdate = Wake | SettleReply;

/**
 * Returns a function that says what the limits have left for a waiter after these approvals. All waiters without limits of their
 * group get the same object.
 * @returns undefined if Redis knows no such key
 */
export function quotasOf({
  limits,
  used,
  groups,
  millisToRoom,
}: QueueUpdate): ((waiter: Pick<Waiter, 'request'>) => Quota) | undefined {
  if (millisToRoom === undefined) return undefined;
  const quotaOf = quotasIn(limits, used, groups, millisToRoom);
  return ({ request: { list } }) => quotaOf(list);
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
  return ({ request: { holdMillis } }) => {
    if (holdMillis === undefined) return Infinity;
    if (storeTime === undefined) return -Infinity;
    return wokenAt + at + holdMillis - storeTime;
  };
}

/** @param sentAt when Redis was asked, by this replica's clock */
export function heldUntilByReply({ holdsLeft }: SettleReply, sentAt: number): HeldUntil {
  return ({ claimOrId: claim, request: { holdMillis = Infinity } }) =>
    sentAt + (holdsLeft.get(claim) ?? holdMillis);
}

export interface QueueViewParts {
  /** The length of the key's windows by this replica's rules, as of now. */
  readonly windowMillis: () => number;
  /** How long after the end of a window this replica waits for another window leader. */
  readonly graceMillis: number;
  /** How long after there is room a settle is due, by that time of Redis's clock. */
  readonly delayMillis: (storeRoomAt: number) => number;
}

/**
 * What a replica knows of a key with waiters, by what Redis has said last, in whatever order its messages come: above all when
 * there will be room. That is the end of the window, or sooner if Redis says so. Times are a clock's milliseconds.
 */
export class QueueView {
  /** When there will be room, as far as is known; a time in the past if there is room now. */
  roomAt = 0;
  /** The same by Redis's clock; undefined if that is not known. */
  #storeRoomAt: number | undefined;
  /** The limits in force, as Redis wrote them last. After a loss of its memory, it gets them from here. */
  #limits = '';
  /** Whether nobody waits on any replica, so that no window leader is needed. */
  isQueueEmpty = false;

  constructor(private readonly parts: QueueViewParts) {}

  /** Whole milliseconds until there is room; below 0 after that time. */
  millisToRoom(now: number): number {
    return Math.round(this.roomAt - now);
  }

  /** What Redis gets of a key that it may have lost. */
  window(now: number): KnownWindow {
    return { millisLeft: this.millisToRoom(now), limits: this.#limits };
  }

  /** When to settle if no wake has come by then. */
  dueAt(isLeading: boolean): number {
    const { delayMillis, graceMillis } = this.parts;
    const delay = this.#storeRoomAt === undefined ? 0 : delayMillis(this.#storeRoomAt);
    return this.roomAt + delay + (isLeading ? 0 : graceMillis);
  }

  /** @param hasTickets whether anybody here has one: then the timing of a lost window is needed to create the key again */
  learn(
    now: number,
    heard: Heard,
    update: Pick<QueueUpdate, 'at' | 'millisToRoom' | 'waiting' | 'limits'>,
    hasTickets: boolean,
  ): void {
    const { at, millisToRoom, waiting, limits } = update;
    if (millisToRoom !== undefined) this.#learnRoom(now, heard, at, millisToRoom);
    else if (!hasTickets) this.#forgetWindow(now);
    if (heard === 'late') return;
    this.isQueueEmpty = waiting === 0;
    // A key that Redis does not know has none. Redis has to get the earlier ones.
    if (limits) this.#limits = limits;
  }

  /**
   * Each message is late by its time on the way, so of two that name the same moment the earlier end is the more exact. Once
   * that has come, it was too early. A late message may be older than what is known. If it is, a settle that is too early
   * finds out.
   */
  #learnRoom(now: number, heard: Heard, at: number, millisToRoom: number): void {
    const roomAt = now + millisToRoom;
    const storeRoomAt = at + millisToRoom;
    const isAhead = now < this.roomAt;
    if (heard === 'late') {
      if (roomAt >= this.roomAt && isAhead) return;
      this.roomAt = roomAt;
      this.#storeRoomAt = undefined;
      return;
    }
    const isSameMoment =
      this.#storeRoomAt !== undefined &&
      Math.abs(storeRoomAt - this.#storeRoomAt) < SAME_MOMENT_MILLIS;
    this.roomAt = isSameMoment && isAhead ? Math.min(roomAt, this.roomAt) : roomAt;
    this.#storeRoomAt = storeRoomAt;
  }

  /** No window is known. The next settle is due when a window would have passed. */
  #forgetWindow(now: number): void {
    const { windowMillis } = this.parts;
    const millis =
      this.#limits === '' ? windowMillis() : limitsIn(this.#limits).limits[0].windowMillis;
    this.roomAt = now + millis;
    this.#storeRoomAt = undefined;
  }
}
