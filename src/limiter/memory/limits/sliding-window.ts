import type { Limit } from '../../limits.js';
import { type MemoryBudget, UNBOUNDED_BUDGET } from '../memory-budget.js';
import { CountedLimit, type WithHolds } from './counted-limit.js';
import { RecentIds, type Taken } from './recent-ids.js';
import type { Window } from './window.js';

/** The rules of a sliding window. */
type SlidingLimit = Limit & { readonly algorithm: { readonly name: 'sliding_window' } };

/**
 * A limit of which no span of its window's length has more than the maximum. The window moves on in steps: what an
 * approval takes counts until the end of its step plus the window, rounded up to a step. So room comes back at most one
 * step late, and never early. `lua/limits/sliding-window.lua` has the same rules.
 */
export class SlidingWindow extends CountedLimit<SlidingLimit> {
  override maximum: number;
  protected override ids: RecentIds;
  readonly #step: number;
  /** How many steps count besides the current one. */
  readonly #steps: number;
  #stepStart: number;
  /** Of the current step: steps are counted from the limit's first one on. */
  #number = 0;
  /** What the approvals of each step take that counts, by its number; none is 0. */
  #sums = new Map<number, number>();

  constructor(
    now: number,
    limit: SlidingLimit,
    window: Window,
    key: WithHolds,
    maxIds: number,
    budget: MemoryBudget,
  ) {
    super(limit, window, key, maxIds);
    this.maximum = limit.maximum;
    this.ids = new RecentIds(budget);
    this.#step = Math.max(1, Math.ceil(limit.windowMillis / limit.algorithm.steps));
    this.#steps = Math.ceil(limit.windowMillis / this.#step);
    this.#stepStart = now;
  }

  get countsUntil(): number {
    return this.window.end + (this.#steps + 2) * this.#step;
  }

  get sum(): number {
    return total(this.#sums.values());
  }

  /**
   * When this number of hits fits, or, if it fits already, when one more hit does than now: when the oldest steps end to count
   * that take so much, or a hold lapses. More than the maximum may count, after a correction or with a lower maximum.
   */
  roomAt(hits = 1): number {
    const { nextLapse: lapse } = this;
    const wanted = Math.min(this.takenOf(hits), this.maximum);
    let missing = Math.max(1, this.used - this.maximum + wanted);
    for (let number = this.#number - this.#steps; number <= this.#number; number += 1) {
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
      for (const number of this.#sums.keys()) if (!this.#counts(number)) this.#sums.delete(number);
      this.#dropEndedIds(this.#number);
    }
    return this.window.rollTo(now, this.millis);
  }

  take(id: string, hits: number, isHeld: boolean): boolean {
    if (!this.keepsIdOf(isHeld) || this.#find(id)) return true;
    const taken = this.takenOf(hits);
    if (!this.ids.add(id, { hits: taken, mark: this.#number })) return false;
    this.#add(this.#number, taken);
    return true;
  }

  giveBack(id: string, isUnused: boolean): boolean {
    const taken = isUnused || !this.limit.keepsReleased ? this.#find(id) : undefined;
    if (!taken) return false;
    this.ids.remove(id);
    this.#add(taken.mark, -taken.hits);
    return true;
  }

  takenBy(id: string): number | undefined {
    return this.#find(id)?.hits;
  }

  amend(id: string, hits: number): boolean {
    const taken = this.#find(id);
    if (!taken) return false;
    this.#add(taken.mark, this.takenOf(hits) - taken.hits);
    taken.hits = this.takenOf(hits);
    return true;
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
    let number = this.#number - this.#steps;
    for (; number < this.#number; number += 1) {
      const sum = this.#sums.get(number) ?? 0;
      if (left <= sum) break;
      left -= sum;
    }
    return this.#endOf(number) + rounds * (this.#steps + 1) * this.#step - now;
  }

  continuesAs(other: Limit): boolean {
    const { windowMillis, algorithm } = other;
    return (
      this.countsAs(other) &&
      this.limit.windowMillis === windowMillis &&
      algorithm.name === 'sliding_window' &&
      this.limit.algorithm.steps === algorithm.steps
    );
  }

  change(now: number, limit: Limit): void {
    this.limit = limit as SlidingLimit;
    this.maximum = limit.maximum;
    this.roll(now);
  }

  copy(key: WithHolds, window = this.window.copy()): SlidingWindow {
    const { limit, maxIds } = this;
    const copy = new SlidingWindow(this.#stepStart, limit, window, key, maxIds, UNBOUNDED_BUDGET);
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

  clear(): void {
    this.ids.clear();
    this.#sums.clear();
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

  #counts(number: number): boolean {
    return number >= this.#number - this.#steps;
  }

  /** Adds to what a step takes. */
  #add(number: number, hits: number): void {
    const sum = (this.#sums.get(number) ?? 0) + hits;
    if (sum > 0) this.#sums.set(number, sum);
    else this.#sums.delete(number);
  }

  #find(id: string): Taken | undefined {
    const taken = this.ids.find(id);
    return taken && this.#counts(taken.mark) ? taken : undefined;
  }
}

function total(numbers: Iterable<number>): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}
