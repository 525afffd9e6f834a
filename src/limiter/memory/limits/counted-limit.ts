import type { RemainingReport } from '../../limiter.js';
import { kindOf } from '../../kinds/kinds.js';
import {
  capacityOf,
  type Limit,
  type LimitQuota,
  limitQuota,
  type LimitState,
  takenOf,
} from '../../limits.js';
import type { Holds } from '../holds.js';
import type { InstanceBounds, MemoryBudget } from '../memory-budget.js';
import { stoppedGroup } from '../queue/waiting-list.js';
import type { Window } from './window.js';

/** What a level that drains may lack by the rounding of doubles. Others are whole numbers. */
export const EPSILON = 1e-9;

/**
 * A time at which there is room, but not before the end of a pause. If there is room already, that end alone counts.
 * @param pausedUntil -Infinity if there is no pause
 */
export function unlessPaused(roomAt: number, isFull: boolean, pausedUntil: number): number {
  const isPaused = pausedUntil > -Infinity;
  return isPaused && !isFull ? pausedUntil : Math.max(roomAt, pausedUntil);
}

/** Until a time, in whole microseconds, as Redis says it. A time since 1970 has no exact fractions of milliseconds. */
export function millisUntil(time: number, now: number): number {
  return Math.round((time - now) * 1000) / 1000;
}

/** What a limit has to know of its key. */
export interface KeyOfLimit {
  /**
   * The held approvals, which count in each limit that counts their lists, unless the limit keeps what is released. Undefined
   * if the key had no hold yet.
   */
  readonly holds: Holds | undefined;
  readonly bounds: InstanceBounds;
  /** Holds the ids. */
  readonly budget: MemoryBudget;
}

/**
 * A limit of a key, and what counts of it. Each kind of limit is a class of its own. Where the kinds are alike, this is what
 * they do. The kinds in `lua/limits/` answer the same questions. Times are milliseconds of a clock. A limit of some lanes is
 * asked only about their checks and approvals.
 */
export abstract class CountedLimit {
  /** The maximum in force. */
  abstract maximum: number;
  /** Those of its approvals that are not held; those of held ones only if the limit keeps what is released. */
  protected abstract readonly ids: { readonly size: number };
  protected readonly maxIds: number;

  /** @param window its windows, or periods of that length. Those of the own limit are the key's. */
  constructor(
    protected limit: Limit,
    protected readonly window: Window,
    protected readonly key: KeyOfLimit,
  ) {
    this.maxIds = key.bounds.maxIdsPerKey;
  }

  /** When the current window, or period of that length, began. */
  get start(): number {
    return this.window.start;
  }

  /** How long it lasts. */
  get millis(): number {
    return this.window.millis;
  }

  /** Until when anything may count that was approved by now. */
  abstract get countsUntil(): number;

  /** What the approvals take, held ones included if they count here; a whole number. */
  get used(): number {
    return this.sum + this.#takenByHeld;
  }

  /** The same, not rounded up. */
  get exactUsed(): number {
    return this.used;
  }

  /** What the approvals take that are not held. */
  abstract get sum(): number;

  /** The lanes whose checks it counts. Undefined: it counts all checks. */
  get lanes(): Limit['lanes'] {
    return this.limit.lanes;
  }

  get name(): string | undefined {
    return this.limit.name;
  }

  /** The group that has it to itself. */
  get group(): string | undefined {
    return this.limit.group;
  }

  /** The lists whose checks it counts, as `Stopped` has them. Undefined: it counts all checks. */
  get lists(): readonly string[] | undefined {
    const { lanes, group } = this.limit;
    return group === undefined ? lanes : [stoppedGroup(group)];
  }

  /** Whether nothing counts here, so that it might as well begin again. */
  get countsNothing(): boolean {
    return this.used === 0;
  }

  /** Whether held approvals take all of it, so that only a lapse makes room by itself. */
  get isFullOfHeld(): boolean {
    return this.#takenByHeld >= this.capacity;
  }

  /** Whether waiters are let go at an even pace. */
  get hasPace(): boolean {
    return kindOf(this.limit.algorithm).hasPace;
  }

  /** Whether it has no room for one hit. */
  get isFull(): boolean {
    return !this.fits(1);
  }

  /**
   * When it has more room. Where a kind can say it: when there is room for a number of hits, which the head of the queue
   * needs; without one, when one more hit fits.
   */
  abstract roomAt(hits?: number): number;

  /**
   * Moves on to `now`.
   * @param ofRules the length of the windows by the rules, if requests may set another
   * @returns whether another window, or period, has begun
   */
  abstract roll(now: number, ofRules: number): boolean;

  /**
   * Takes what a vendor says remains, if the limit has fixed windows.
   * @returns whether it has
   */
  report(_now: number, _report: RemainingReport): boolean {
    return false;
  }

  /** Something that counted may have been given back. Only a report holds it back. */
  noteGivenBack?(): void;

  /** Whether an approval with this number of hits fits. */
  fits(hits: number): boolean {
    return this.takenOf(hits) <= this.free + EPSILON;
  }

  /** Whether a waiter fits. One that needs more than the maximum, which was lowered since, gets a window for itself. */
  fitsAlone(hits: number): boolean {
    return this.fits(hits) || (this.maximum > 0 && this.free >= this.capacity - EPSILON);
  }

  /** Whether it takes more than may ever count at once. */
  isBelow(hits: number): boolean {
    return this.takenOf(hits) > this.capacity;
  }

  /**
   * Whether no more ids are kept.
   * @param unclaimed how many held approvals will be held no more once they are claimed, so that their ids are kept here
   */
  hasAllIds(isHeld: boolean, unclaimed: number): boolean {
    if (!this.keepsIdOf(isHeld)) return false;
    const { name, counts, algorithm } = this.limit;
    // It is full before. Other kinds keep ids for longer than these count.
    const countsIds = name !== undefined && counts === 'requests' && kindOf(algorithm).hasBoundary;
    if (countsIds && this.maximum <= this.maxIds) return false;
    // Ids that are kept with their holds come later.
    return this.ids.size + (this.keepsIdOf(true) ? 0 : unclaimed) >= this.maxIds;
  }

  /**
   * Takes an approval, unless it counts here already.
   * @returns false if there is no memory for its id, so that nothing has changed
   */
  abstract take(id: string, hits: number, isHeld: boolean): boolean;

  /**
   * Gives back what an approval takes, unless the limit keeps what is released.
   * @param isUnused nobody has got the approval, so that every limit gives it back
   * @returns whether it counted here, other than as a held one
   */
  abstract giveBack(id: string, isUnused: boolean): boolean;

  /**
   * Gives hits back without the approvals that took them. Held approvals count on.
   * @returns how many it has given back; 0 for a limit that counts requests, or keeps what is released, or is no fixed window
   */
  refund(_hits: number): number {
    return 0;
  }

  /**
   * A denied check takes what is left of a fixed window, if it lacks room. Other kinds have no windows by whose end they have
   * room again.
   */
  takeRest?(now: number, hits: number): void;

  /** Returns the part that an approval takes which is not held; undefined if it does not count here. */
  abstract takenBy(id: string): number | undefined;

  /** @returns false if there is no memory for other hits of an approval, so that nothing has changed */
  reserve(_id: string, _hits: number): boolean {
    return true;
  }

  /** @returns whether the approval counts here, other than as a held one */
  abstract amend(id: string, hits: number): boolean;

  /**
   * The least time until a check would have its turn, if nothing was given back before; 0 if there is room.
   * @param before how many wait before it, each for one hit at least
   * @param laterMillis the length of the windows after the current one
   * @param laterMaximum their maximum. Undefined: it stays.
   */
  abstract millisToTurn(
    now: number,
    before: number,
    hits: number,
    laterMillis: number,
    laterMaximum?: number,
  ): number;

  /** Whether what counts here can be carried over to the limit of other rules. */
  countsAs(other: Limit): boolean {
    const { name, counts, lanes, keepsReleased } = this.limit;
    return (
      name === other.name &&
      counts === other.counts &&
      lanes?.join() === other.lanes?.join() &&
      keepsReleased === other.keepsReleased
    );
  }

  /** Whether the limit of other rules is of the same kind as well, so that it goes on with what was approved. */
  continuesAs(limit: Limit): boolean {
    const isSameKind = limit.algorithm.name === this.limit.algorithm.name;
    return isSameKind && this.countsAs(limit) && this.hasSameSteps(limit);
  }

  /** Takes other rules, under which it continues. All that was approved goes on to count. */
  abstract change(now: number, limit: Limit): void;

  /** Takes a sum that counts in a limit of another kind, without ids. */
  abstract carry(sum: number): void;

  /** The queue is served, perhaps later than there was room. Only the room of a bucket depends on when it is taken. */
  beginServing?(): void;

  /** Nobody waits any more. */
  endServing?(): void;

  /**
   * Returns a copy that may roll, and take what waiters need. It finds ids in the original, so that it costs little.
   * @param key of the copy
   * @param window of the copy, if it is the key's; otherwise the copy has one of its own
   */
  abstract copy(key: KeyOfLimit, window?: Window): CountedLimit;

  /** Whether to roll to now would change nothing, as far as can be told at once. */
  isCurrentAt(_now: number): boolean {
    return false;
  }

  /** As of now, to which it has rolled. */
  state(now: number): LimitState {
    const { name, algorithm, counts, keepsReleased, lanes, perGroup } = this.limit;
    // A spread takes five times as long.
    return {
      name,
      windowMillis: this.millis,
      maximum: this.maximum,
      algorithm,
      counts,
      keepsReleased,
      lanes,
      perGroup,
      used: this.used,
      millisToWindowEnd: this.window.end - Math.max(now, this.start),
    };
  }

  /** @param pausedUntil -Infinity if the key is not paused */
  quota(now: number, pausedUntil: number): LimitQuota {
    const isPaused = pausedUntil > -Infinity;
    const used = isPaused ? Infinity : this.used;
    const roomAt = this.roomAt();
    const opensAt = isPaused ? unlessPaused(roomAt, this.isFull, pausedUntil) : roomAt;
    const resetMillis = millisUntil(opensAt, now);
    return limitQuota(this.limit, this.millis, this.maximum, used, resetMillis);
  }

  /** Gives back the memory of a window that has ended. Nothing else changes. */
  abstract forgetEnded(now: number): void;

  /** Gives back all memory. */
  abstract clear(): void;

  /** What may count at once. */
  get capacity(): number {
    return capacityOf({ maximum: this.maximum, algorithm: this.limit.algorithm });
  }

  /** Below 0 if more counts. */
  protected get free(): number {
    return this.capacity - this.exactUsed;
  }

  /** Whether approvals count because they are held. A limit that keeps what is released counts them as all others. */
  protected get countsHeld(): boolean {
    return !this.limit.keepsReleased;
  }

  /** Whether the limit of its kind counts approvals for as long, as far as that depends on the kind. */
  protected hasSameSteps(_limit: Limit): boolean {
    return true;
  }

  /**
   * When the next lapse may make room; Infinity if none may. An approval that nobody has claimed is given back to every limit,
   * and another one only where it counts as a held one.
   */
  protected get nextLapse(): number {
    const { holds } = this.key;
    // Others hold more, and a lapse tells which group has more room.
    if (this.limit.group !== undefined && !this.isFullOfHeld) return Infinity;
    return holds && (this.countsHeld || holds.hasUnclaimed) ? holds.firstLapse : Infinity;
  }

  /** Whether it has the id of an approval itself. Other ids that are held are kept with their holds, and count with them. */
  keepsIdOf(isHeld: boolean): boolean {
    return !isHeld || !this.countsHeld;
  }

  protected takenOf(hits: number): number {
    return takenOf(this.limit, hits);
  }

  get #takenByHeld(): number {
    const held = this.countsHeld ? this.key.holds?.countedIn(this.limit) : undefined;
    if (!held) return 0;
    return this.limit.counts === 'hits' ? held.hits : held.size;
  }
}

/** What the approvals take of all these limits together. */
export function usedOf(limits: readonly CountedLimit[]): number {
  return limits.reduce((sum, { exactUsed }) => sum + exactUsed, 0);
}
