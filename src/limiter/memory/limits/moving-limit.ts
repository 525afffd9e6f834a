import type { Limit } from '../../limits.js';
import { CountedLimit, type KeyOfLimit } from './counted-limit.js';
import { RecentIds, type Taken } from './recent-ids.js';
import type { Window } from './window.js';

/**
 * A limit without windows: each approval ends to count by itself. Its id is kept with a mark, by which its kind knows
 * when. `lua/limits/any-limit.lua` and `lua/limits/recent-ids.lua` have the same rules.
 */
export abstract class MovingLimit extends CountedLimit {
  protected override ids: RecentIds;

  constructor(limit: Limit, window: Window, key: KeyOfLimit) {
    super(limit, window, key);
    this.ids = new RecentIds(key.budget);
  }

  take(id: string, hits: number, isHeld: boolean): boolean {
    if (!this.keepsIdOf(isHeld) || this.#find(id)) return true;
    const taken = this.takenOf(hits);
    if (!this.ids.add(id, { hits: taken, mark: this.mark })) return false;
    this.count(taken);
    return true;
  }

  giveBack(id: string, isUnused: boolean): boolean {
    if (this.limit.keepsReleased && !isUnused) return false;
    const taken = this.#find(id);
    // Also one that does not count: a bucket with a slower pace would let it count again, and be released twice.
    this.ids.remove(id);
    if (taken) this.recount(taken, 0);
    return taken !== undefined;
  }

  takenBy(id: string): number | undefined {
    return this.#find(id)?.hits;
  }

  amend(id: string, hits: number): boolean {
    const taken = this.#find(id);
    if (taken) taken.hits = this.recount(taken, this.takenOf(hits));
    return taken !== undefined;
  }

  clear(): void {
    this.ids.clear();
  }

  /** What is kept with an id of now. */
  protected abstract get mark(): number;

  protected abstract counts(taken: Taken): boolean;

  /** Takes hits as of now. */
  protected abstract count(hits: number): void;

  /** Lets an approval take other hits than before. @returns the hits that it takes from now on */
  protected abstract recount(taken: Taken, hits: number): number;

  #find(id: string): Taken | undefined {
    const taken = this.ids.find(id);
    return taken && this.counts(taken) ? taken : undefined;
  }
}
