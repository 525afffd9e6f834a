/** Items of which the first is known, and any of which can be moved or removed: a binary heap. Each item has its index. */
export class IndexedHeap<Item extends { index: number }> {
  readonly #items: Item[] = [];

  constructor(private readonly isBefore: (one: Item, other: Item) => boolean) {}

  get first(): Item | undefined {
    return this.#items[0];
  }

  /** In the order of the heap. */
  get all(): readonly Item[] {
    return this.#items;
  }

  add(item: Item): void {
    this.#put(item, this.#items.length);
    this.#rise(item);
  }

  /** To be called when an item that is here has another place in the order. */
  update(item: Item): void {
    this.#rise(item);
    this.#sink(item);
  }

  remove(item: Item): void {
    const last = this.#items.pop();
    if (!last || last === item) return;
    this.#put(last, item.index);
    this.update(last);
  }

  #rise(item: Item): void {
    for (;;) {
      const parent = item.index > 0 ? this.#items[(item.index - 1) >> 1] : undefined;
      if (!parent || !this.isBefore(item, parent)) return;
      this.#swap(item, parent);
    }
  }

  #sink(item: Item): void {
    for (;;) {
      const left = this.#items[2 * item.index + 1];
      const right = this.#items[2 * item.index + 2];
      const next = left && right && this.isBefore(right, left) ? right : left;
      if (!next || !this.isBefore(next, item)) return;
      this.#swap(item, next);
    }
  }

  #swap(one: Item, other: Item): void {
    const { index } = one;
    this.#put(one, other.index);
    this.#put(other, index);
  }

  #put(item: Item, index: number): void {
    item.index = index;
    this.#items[index] = item;
  }
}
