import { Heap } from './heap.js';

export interface Moment {
  readonly id: string;
  readonly at: number;
}

/** How many outdated moments may be left, besides one for each item. */
const MOST_OUTDATED = 100;

/** Moments of items, of which the first is known. A moment is outdated when its item has another one, or is gone. */
export class Moments<Item> extends Heap<Moment> {
  /**
   * @param items by their ids
   * @param momentOf returns undefined for an item without a moment
   */
  constructor(
    private readonly items: ReadonlyMap<string, Item>,
    private readonly momentOf: (item: Item) => number | undefined,
  ) {
    super(isBefore);
  }

  /** The first that is not outdated. */
  override get first(): Moment | undefined {
    for (let next = super.first; next; next = super.first) {
      if (this.#itemAt(next.id, next.at) !== undefined) return next;
      this.removeAt(0);
    }
    return undefined;
  }

  override add(moment: Moment): void {
    super.add(moment);
    if (this.size <= MOST_OUTDATED + 2 * this.items.size) return;
    this.clear();
    for (const [id, item] of this.items) {
      const at = this.momentOf(item);
      if (at !== undefined) super.add({ id, at });
    }
  }

  /** Removes the first up to a time, and returns it. */
  takeUntil(time: number): Moment | undefined {
    for (let next = super.first; next && next.at <= time; next = super.first) {
      this.removeAt(0);
      if (this.#itemAt(next.id, next.at) !== undefined) return next;
    }
    return undefined;
  }

  /** Visits the items with moments up to a time, some perhaps twice, in any order. It looks at few others. */
  visitUntil(time: number, visit: (id: string, item: Item) => void): void {
    const indices = [0];
    for (let index = indices.pop(); index !== undefined; index = indices.pop()) {
      const moment = this.all[index];
      if (!moment) continue;
      const { id, at } = moment;
      if (at > time) continue;
      const item = this.#itemAt(id, at);
      if (item !== undefined) visit(id, item);
      indices.push(2 * index + 1, 2 * index + 2);
    }
  }

  #itemAt(id: string, at: number): Item | undefined {
    const item = this.items.get(id);
    return item !== undefined && this.momentOf(item) === at ? item : undefined;
  }
}

function isBefore(one: Moment, other: Moment): boolean {
  return one.at < other.at;
}
