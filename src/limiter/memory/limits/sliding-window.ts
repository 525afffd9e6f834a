import type { SlidingWindowAlgorithm } from '../../kinds/sliding-window.js';
import { isSameAlgorithm, type Limit } from '../../limits.js';
import type { KeyOfLimit } from './counted-limit.js';
import { MovingLimit } from './moving-limit.js';
import type { Taken } from './recent-ids.js';
import type { Window } from './window.js';

/**
 * A limit of which no span of its window's length has more than the maximum. The window moves on in steps: what an
 * approval takes counts until the end of its step plus the window, rounded up to a step. So room comes back at most one
 * step late, and never early. `lua/limits/sliding-window.lua` has the same rules.
 */
export class SlidingWindow extends MovingLimit {
  override maximum: number;
  readonly #step: number;
  /** How many steps count besides the current one. */
  readonly #steps: number;
  #stepStart: number;
  /** Of the current step: steps are counted from the limit's first one on. */
  #number = 0;
  /** What the approvals of each step take that counts, by its number; none is 0. */
  #sums = new Map<number, number>();

  constructor(limit: Limit, window: Window, key: KeyOfLimit, now: number) {
    super(limit, window, key);
    const { steps } = limit.algorithm as SlidingWindowAlgorithm;
    this.maximum = limit.maximum;
    this.#step = Math.max(1, Math.ceil(limit.windowMillis / steps));
    this.#steps = Math.ceil(limit.windowMillis / this.#step);
    this.#stepStart = now;
  }

  get countsUntil(): number {
    return this.window.end + (this.#steps + 2) * this.#step;
  }

  get sum(): number {
    let sum = 0;
    for (const part of this.#sums.values()) sum += part;
    return sum;
  }

  /**
   * When this number of hits fits, or, if it fits already, when one more hit does than now: when the oldest steps end to count
   * that take so much, or a hold lapses. More than the maximum may count, after a correction or with a lower maximum.
   */
  roomAt(hits = 1): number {
    const { nextLapse: lapse } = this;
    const wanted = Math.min(this.takenOf(hits), this.maximum);
    let missing = Math.max(1, this.used - this.maximum + wanted);
    for (let number = this.#oldest; number <= this.#number; number += 1) {
      missing -= this.#sums.get(number) ?? 0;
      if (missing <= 0) return Math.min(this.#endOf(number), lapse);
    }
    if (this.fits(hits)) return Math.min(this.window.end, lapse);
    // The rest is held.
    return lapse < Infinity ? lapse : this.window.end;
  }

  roll(now: number): boolean {
    const passed = this.#stepsPassed(now);
    if (passed > 0) {
      this.#stepStart += passed * this.#step;
      this.#number += passed;
      for (const number of this.#sums.keys()) if (number < this.#oldest) this.#sums.delete(number);
      this.#dropEndedIds(this.#number);
    }
    return this.window.rollTo(now, this.millis);
  }

  /**
   * Whoever is approved now or when a step ends has room again a window later. So each `maximum` hits take one more round
   * of all steps. Held approvals count in the current step.
   */
  millisToTurn(now: number, before: number, hits: number): number {
    const free = Math.max(0, this.maximum - this.used);
    const missing = before + Math.min(this.takenOf(hits), this.maximum) - free;
    if (missing <= 0) return 0;
    const rounds = Math.ceil(missing / this.maximum) - 1;
    // What a lowered maximum has no room for makes none when it ends to count.
    const excess = Math.max(0, this.used - this.maximum);
    let left = missing - rounds * this.maximum + excess;
    let number = this.#oldest;
    for (; number < this.#number; number += 1) {
      const sum = this.#sums.get(number) ?? 0;
      if (left <= sum) break;
      left -= sum;
    }
    return this.#endOf(number) + rounds * (this.#steps + 1) * this.#step - now;
  }

  change(now: number, limit: Limit): void {
    this.limit = limit;
    this.maximum = limit.maximum;
    this.roll(now);
  }

  copy(key: KeyOfLimit, window = this.window.copy()): SlidingWindow {
    const copy = new SlidingWindow(this.limit, window, key, this.#stepStart);
    copy.maximum = this.maximum;
    copy.ids = this.ids.copy();
    copy.#number = this.#number;
    copy.#sums = new Map(this.#sums);
    return copy;
  }

  carry(sum: number): void {
    this.#add(this.#number, sum);
  }

  forgetEnded(now: number): void {
    this.#dropEndedIds(this.#number + Math.max(0, this.#stepsPassed(now)));
  }

  override clear(): void {
    super.clear();
    this.#sums.clear();
  }

  protected get mark(): number {
    return this.#number;
  }

  protected counts({ mark }: Taken): boolean {
    return mark >= this.#oldest;
  }

  protected count(hits: number): void {
    this.#add(this.#number, hits);
  }

  protected recount(taken: Taken, hits: number): number {
    this.#add(taken.mark, hits - taken.hits);
    return hits;
  }

  protected override hasSameSteps(other: Limit): boolean {
    const { limit } = this;
    return limit.windowMillis === other.windowMillis && isSameAlgorithm(limit, other);
  }

  /** An id is needed as long as its step counts, so at most until the end of the next generation. */
  #dropEndedIds(number: number): void {
    this.ids.moveTo(Math.floor(number / (this.#steps + 1)));
  }

  #stepsPassed(now: number): number {
    return Math.floor((now - this.#stepStart) / this.#step);
  }

  /** When a step does not count any more. */
  #endOf(number: number): number {
    return this.#stepStart + (number - this.#number + this.#steps + 1) * this.#step;
  }

  /** The number of the oldest step that counts. */
  get #oldest(): number {
    return this.#number - this.#steps;
  }

  /** Adds to what a step takes. */
  #add(number: number, hits: number): void {
    const sum = (this.#sums.get(number) ?? 0) + hits;
    if (sum > 0) this.#sums.set(number, sum);
    else this.#sums.delete(number);
  }
}
