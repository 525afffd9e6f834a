import { capacityOf, type Limit } from '../../limits.js';
import { EPSILON, type KeyOfLimit } from './counted-limit.js';
import { MovingLimit } from './moving-limit.js';
import type { Taken } from './recent-ids.js';
import { microsOf, type Window } from './window.js';

/**
 * While the queue is served, the level may have drained below 0 by what drains in this time, so that a settle that comes
 * late costs delay and no rate.
 */
const CREDIT_MICROS = 30_000;
/** The longest time for which anything counts, in windows: a level is at most the burst and the maximum. */
const MOST_WINDOWS = 3;

/**
 * A limit with an even pace: the maximum per window, and up to `burst` at once. It has a level, which approvals raise by
 * their hits, and which drains by the maximum per window. An approval fits if the level stays within the burst. So in any
 * span L no more than burst + L * maximum / window is approved.
 *
 * A lower maximum cuts the level to its burst + maximum, so it closes the bucket for two windows at most. What is cut off
 * becomes excess. Level and excess together drain at the pace of the higher maximum, and another change of the maximum
 * adds the excess to the level again. So requests with different maxima get no more together than the highest of them
 * allows.
 *
 * It takes an approval that is held once, when it is given: a bucket limits starts, not what is at work.
 * `lua/limits/token-bucket.lua` has the same rules, and the same arithmetic.
 */
export class TokenBucket extends MovingLimit {
  #maximum: number;
  /** The level as it was when something was taken or given back last, and that time in microseconds. */
  #level = 0;
  #time = 0;
  /** When the pace was last changed, in microseconds; 0 if it was not. */
  #paceSince = 0;
  /**
   * How much higher the level, as of `#time`, would be with a higher maximum that was in force before. That maximum is 0
   * if there is no excess, unless the current one is 0.
   */
  #excess = 0;
  #highMaximum = 0;
  /** The level as of the current operation, and its time in microseconds. */
  #drained = 0;
  /** The excess as of the current operation. */
  #excessLeft = 0;
  #now: number;
  /** The number of its periods so far. */
  #generation = 0;

  constructor(limit: Limit, window: Window, key: KeyOfLimit, now: number) {
    super(limit, window, key);
    this.#maximum = limit.maximum;
    this.#now = microsOf(now);
  }

  override get maximum(): number {
    return this.#maximum;
  }

  override set maximum(maximum: number) {
    if (maximum === this.#maximum) return;
    this.#endPace();
    this.#highMaximum = Math.max(this.#highMaximum, this.#maximum);
    this.#maximum = maximum;
    this.#beginPace();
  }

  get countsUntil(): number {
    return this.start + MOST_WINDOWS * this.millis;
  }

  override get exactUsed(): number {
    return this.#drained;
  }

  get sum(): number {
    return Math.max(0, Math.ceil(this.#drained - EPSILON));
  }

  override get countsNothing(): boolean {
    return super.countsNothing && this.#excessLeft === 0;
  }

  /**
   * When this number of hits fits, or, if it fits already or is omitted, when one more hit does than now; or when an approval
   * may be given back that nobody has claimed.
   */
  roomAt(hits?: number): number {
    const free = this.free + EPSILON;
    let wanted = Math.min(this.takenOf(hits ?? 1), this.capacity);
    if (hits === undefined || wanted <= free) wanted = Math.max(1, Math.floor(free) + 1);
    const { nextLapse: lapse } = this;
    if (this.#maximum === 0 || wanted > this.capacity) return Math.min(this.window.end, lapse);
    return Math.min((this.#now + this.#microsToDrain(wanted - this.free)) / 1000, lapse);
  }

  roll(now: number): boolean {
    this.#now = microsOf(now);
    this.#drain(0);
    const before = this.start;
    const hasRolled = this.window.rollTo(now, this.millis);
    if (hasRolled) {
      this.#generation += Math.max(1, Math.floor((this.start - before) / this.millis));
      this.ids.moveTo(this.#generation);
    }
    return hasRolled;
  }

  millisToTurn(_now: number, before: number, hits: number): number {
    const wanted = before + Math.min(this.takenOf(hits), this.capacity);
    return this.#maximum === 0 ? Infinity : this.#microsToDrain(wanted - this.free) / 1000;
  }

  /** A period of another length that begins here ends no generation: its ids may count for as long as it lasts. */
  change(now: number, limit: Limit): void {
    this.limit = limit;
    if (limit.windowMillis !== this.millis) {
      this.#endPace();
      this.window.change(now, limit.windowMillis);
      this.#beginPace();
    }
    this.maximum = limit.maximum;
  }

  copy(key: KeyOfLimit, window = this.window.copy()): TokenBucket {
    const copy = new TokenBucket(this.limit, window, key, 0);
    copy.ids = this.ids.copy();
    copy.#maximum = this.#maximum;
    copy.#level = this.#level;
    copy.#time = this.#time;
    copy.#paceSince = this.#paceSince;
    copy.#excess = this.#excess;
    copy.#highMaximum = this.#highMaximum;
    copy.#now = this.#now;
    copy.#generation = this.#generation;
    return copy;
  }

  carry(sum: number): void {
    if (sum > 0) this.#setLevel(Math.min(sum, this.capacity), 0);
  }

  override beginServing(): void {
    this.#drain(this.#lowestServing);
  }

  override endServing(): void {
    this.#drained = Math.max(0, this.#drained);
  }

  forgetEnded(now: number): void {
    if (now >= this.countsUntil) this.ids.clear();
  }

  /** A held approval counts as any other, from when it is given. */
  protected override get countsHeld(): boolean {
    return false;
  }

  protected get mark(): number {
    return this.#now;
  }

  /** Whether an empty bucket would not have filled since. */
  protected counts({ mark }: Taken): boolean {
    return this.#drainsIn(this.#now - mark) <= this.capacity;
  }

  /** A waiter with more hits than the maximum has come when the maximum was higher. */
  protected count(hits: number): void {
    this.#raise(hits, hits);
  }

  /**
   * More hits count from now on. The level has a bound: what it does not rise by can't be given back later. Of fewer hits, it
   * gives back what has not drained since they were taken: more would let two approvals through side by side. How much has
   * drained of what was taken at another pace is unknown, so nothing of that is given back.
   */
  protected recount({ hits: before, mark }: Taken, hits: number): number {
    if (hits > before) return before + Math.floor(this.#raise(hits - before, 0) + EPSILON);
    const left = before - hits - this.#drainsIn(Math.max(0, this.#now - mark));
    if (mark >= this.#paceSince && left > 0 && this.#drained > 0) {
      this.#setLevel(Math.max(0, this.#drained - left), this.#excessLeft);
    }
    return hits;
  }

  #drainsIn(micros: number): number {
    return (micros * this.#maximum) / (this.millis * 1000);
  }

  #microsToDrain(level: number): number {
    return Math.max(0, Math.ceil(((level - EPSILON) * (this.millis * 1000)) / this.#maximum));
  }

  /** @param lowest what the level may have drained to */
  #levelAt(micros: number, lowest: number): number {
    const elapsed = Math.max(0, micros - this.#time);
    return Math.max(lowest, this.#level - this.#drainsIn(elapsed));
  }

  #drain(lowest: number): void {
    this.#drained = this.#levelAt(this.#now, lowest);
    this.#excessLeft = this.#excess;
    if (this.#excess === 0) return;
    const elapsed = Math.max(0, this.#now - this.#time);
    const drains = (elapsed * (this.#highMaximum - this.#maximum)) / (this.millis * 1000);
    this.#excessLeft = Math.max(0, this.#excess - drains);
  }

  /** Sets level and excess as of now. The excess is kept if a higher maximum is known. */
  #setLevel(level: number, excess: number): void {
    this.#level = level;
    this.#time = Math.max(this.#time, this.#now);
    this.#drained = level;
    if (excess > EPSILON && this.#highMaximum > this.#maximum) {
      const most = this.#highestLevel(this.#highMaximum) - this.#highestLevel(this.#maximum);
      this.#excess = Math.min(excess, most);
    } else {
      this.#excess = 0;
      // A maximum of 0 cuts nothing off, but the next one may.
      if (this.#maximum > 0) this.#highMaximum = 0;
    }
    this.#excessLeft = this.#excess;
  }

  /**
   * Raises the level as far as the maximum allows, and the excess by the rest.
   * @param knownMaximum a maximum that has been in force
   * @returns by how much the level has risen
   */
  #raise(hits: number, knownMaximum: number): number {
    const rise = Math.min(hits, Math.max(0, this.#highestLevel(this.#maximum) - this.#drained));
    if (hits > rise) this.#highMaximum = Math.max(this.#highMaximum, knownMaximum);
    this.#setLevel(this.#drained + rise, this.#excessLeft + (hits - rise));
    return rise;
  }

  /** The highest level that a maximum allows. Nothing drains with a maximum of 0, so the level then stays as it is. */
  #highestLevel(maximum: number): number {
    if (maximum === 0) return Infinity;
    return capacityOf({ maximum, algorithm: this.limit.algorithm }) + maximum;
  }

  /** What the level may have drained to while the queue is served. */
  get #lowestServing(): number {
    return 0 - this.#drainsIn(CREDIT_MICROS);
  }

  /** The level drains at the old pace until now; below 0 as well, for those who may be served from the queue. */
  #endPace(): void {
    this.#level = this.#levelAt(this.#now, this.#lowestServing);
    this.#time = Math.max(this.#time, this.#now);
  }

  #beginPace(): void {
    this.#paceSince = this.#now;
    if (this.#drained <= 0) {
      this.#excess = 0;
      this.#excessLeft = 0;
      this.#highMaximum = 0;
      return;
    }
    const level = this.#drained + this.#excessLeft;
    const highest = this.#highestLevel(this.#maximum);
    this.#setLevel(Math.min(level, highest), Math.max(0, level - highest));
  }
}
