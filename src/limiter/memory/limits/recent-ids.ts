import { type MemoryBudget, UNBOUNDED_BUDGET } from '../memory-budget.js';

/** What an id takes, measured. */
const BYTES_PER_ID = 250;

/** What an approval took, and when: a mark, as the kind of its limit has it. */
export interface Taken {
  hits: number;
  readonly mark: number;
}

/**
 * The ids of the approvals of a limit that does not end with its window, in two generations. A generation lasts as long as
 * any approval counts, so that no id is needed for longer than two. `lua/limits/recent-ids.lua` has the same rules.
 */
export class RecentIds {
  #current = new Map<string, Taken>();
  #before = new Map<string, Taken>();
  /** The number of the current generation. */
  #generation = 0;
  /** Whether the maps also belong to the original. */
  #isShared = false;

  constructor(private readonly budget: MemoryBudget) {}

  get size(): number {
    return this.#current.size + this.#before.size;
  }

  /** A copy to which ids may be added, or in which generations end. Until then it shares the memory of this one. */
  copy(): RecentIds {
    const copy = new RecentIds(UNBOUNDED_BUDGET);
    copy.#current = this.#current;
    copy.#before = this.#before;
    copy.#generation = this.#generation;
    copy.#isShared = true;
    return copy;
  }

  /** Drops the ids of the generations that are over. */
  moveTo(generation: number): void {
    const passed = generation - this.#generation;
    if (passed === 0) return;
    this.#generation = generation;
    this.#giveBack(this.#before);
    if (passed > 1) this.#giveBack(this.#current);
    this.#before = passed > 1 ? new Map<string, Taken>() : this.#current;
    this.#current = new Map();
  }

  /** @returns false if there is no memory for it, so that nothing has changed */
  add(id: string, taken: Taken): boolean {
    if (!this.budget.take(BYTES_PER_ID)) return false;
    this.#endSharing();
    this.#current.set(id, taken);
    return true;
  }

  find(id: string): Taken | undefined {
    return this.#current.get(id) ?? this.#before.get(id);
  }

  remove(id: string): void {
    if (this.#current.delete(id) || this.#before.delete(id)) this.budget.giveBack(BYTES_PER_ID);
  }

  clear(): void {
    if (this.size === 0) return;
    this.#giveBack(this.#current);
    this.#giveBack(this.#before);
    this.#current = new Map();
    this.#before = new Map();
  }

  #endSharing(): void {
    if (!this.#isShared) return;
    this.#isShared = false;
    this.#current = new Map(this.#current);
    this.#before = new Map(this.#before);
  }

  #giveBack(ids: ReadonlyMap<string, Taken>): void {
    this.budget.giveBack(ids.size * BYTES_PER_ID);
  }
}
