/** An item of a heap. */
export interface HeapItem {
  /** Where it is. The heap sets it. */
  index: number;
}

/** Items of which the first is known: a binary heap. */
export class Heap<Item extends HeapItem> {
  readonly #items: Item[] = [];

  constructor(private readonly isBefore: (one: Item, other: Item) => boolean) {}

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

  /** To be called when an item has another place in the order. */
  update(item: Item): void {
    this.#sink(item, this.#rise(item, item.index));
  }

  remove({ index }: Item): void {
    const last = this.#items.pop();
    if (last === undefined || index >= this.#items.length) return;
    this.#put(last, index);
    this.update(last);
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
    item.index = index;
  }
}
