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

  constructor(private readonly budget: MemoryBudget) {}

  get size(): number {
    return this.#current.size + this.#before.size;
  }

  /**
   * Returns a copy that counts the ids, and finds them in the original, those of ended generations included. Further ids may
   * be added to it, and are only counted.
   */
  copy(): RecentIds {
    return new RecentIdCount(this, this.#current.size, this.#before.size, this.#generation);
  }

  /** Drops the ids of the generations that are over. */
  moveTo(generation: number): void {
    const passed = generation - this.#generation;
    if (passed === 0) return;
    this.#generation = generation;
    this.#forget(this.#before);
    if (passed > 1) this.#forget(this.#current);
    this.#before = this.#current;
    this.#current = new Map();
  }

  /**
   * Adds an id. It may be one that does not count any more.
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(id: string, taken: Taken): boolean {
    if (!this.#current.has(id) && !this.budget.take(BYTES_PER_ID)) return false;
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
    this.#forget(this.#current);
    this.#forget(this.#before);
  }

  #forget(ids: Map<string, Taken>): void {
    this.budget.giveBack(ids.size * BYTES_PER_ID);
    ids.clear();
  }
}

/** The number of the ids of each generation. */
class RecentIdCount extends RecentIds {
  /** @param original undefined once they are cleared */
  constructor(
    private original: RecentIds | undefined,
    private current: number,
    private before: number,
    private generation: number,
  ) {
    super(UNBOUNDED_BUDGET);
  }

  override get size(): number {
    return this.current + this.before;
  }

  override moveTo(generation: number): void {
    const passed = generation - this.generation;
    if (passed === 0) return;
    this.generation = generation;
    this.before = passed > 1 ? 0 : this.current;
    this.current = 0;
  }

  override add(): boolean {
    this.current += 1;
    return true;
  }

  override find(id: string): Taken | undefined {
    return this.original?.find(id);
  }

  override clear(): void {
    this.original = undefined;
    this.current = 0;
    this.before = 0;
  }
}
