interface Scored<T> {
  readonly item: T;
  readonly score: number;
}

/**
 * The items with the highest scores of all that are offered. Most offers cost one comparison, since few items get among
 * the highest.
 */
export class Top<T> {
  readonly #top: Scored<T>[] = [];
  /** The score that an item has to exceed, once the list is full. */
  #floor = -Infinity;

  constructor(private readonly most: number) {}

  offer(item: T, score: number): void {
    if (score <= this.#floor) return;
    let index = this.#top.length;
    while (index > 0 && score > (this.#top[index - 1]?.score ?? 0)) index -= 1;
    this.#top.splice(index, 0, { item, score });
    if (this.#top.length > this.most) this.#top.pop();
    if (this.#top.length === this.most) this.#floor = this.#top.at(-1)?.score ?? Infinity;
  }

  /** The highest first; of equal ones, those that were offered first. */
  get items(): T[] {
    return this.#top.map(({ item }) => item);
  }
}
