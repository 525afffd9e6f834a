/** Items of which the first is known: a binary heap. */
export class Heap<Item> {
  readonly #items: Item[] = [];

  /** @param moved gets the index of an item whenever it has another one */
  constructor(
    private readonly isBefore: (one: Item, other: Item) => boolean,
    private readonly moved: (item: Item, index: number) => void = () => undefined,
  ) {}

  get size(): number {
    return this.#items.length;
  }

  get first(): Item | undefined {
    return this.#items[0];
  }

  /** By their indices: none of the items at 2i + 1 and 2i + 2 is before the item at i. */
  get all(): readonly Item[] {
    return this.#items;
  }

  add(item: Item): void {
    const index = this.#items.length;
    this.#put(item, index);
    this.#rise(item, index);
  }

  /** To be called when the item at an index has another place in the order. */
  update(index: number): void {
    const item = this.#items[index];
    if (item !== undefined) this.#sink(item, this.#rise(item, index));
  }

  removeAt(index: number): void {
    const last = this.#items.pop();
    if (last === undefined || index >= this.#items.length) return;
    this.#put(last, index);
    this.update(index);
  }

  clear(): void {
    this.#items.length = 0;
  }

  /** @returns where the item is then */
  #rise(item: Item, from: number): number {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#items[above];
      if (parent === undefined || !this.isBefore(item, parent)) break;
      this.#put(parent, index);
      index = above;
    }
    if (index !== from) this.#put(item, index);
    return index;
  }

  #sink(item: Item, from: number): void {
    let index = from;
    for (;;) {
      const left = this.#items[2 * index + 1];
      const right = this.#items[2 * index + 2];
      const isRight = left !== undefined && right !== undefined && this.isBefore(right, left);
      const next = isRight ? right : left;
      if (next === undefined || !this.isBefore(next, item)) break;
      this.#put(next, index);
      index = 2 * index + (isRight ? 2 : 1);
    }
    if (index !== from) this.#put(item, index);
  }

  #put(item: Item, index: number): void {
    this.#items[index] = item;
    this.moved(item, index);
  }
}

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

  #itemAt(id: string, at: number): Item | undefined {
    const item = this.items.get(id);
    return item !== undefined && this.momentOf(item) === at ? item : undefined;
  }
}

function isBefore(one: Moment, other: Moment): boolean {
  return one.at < other.at;
}
