/**
 * Keeps the values of the keys that were asked for recently, in two generations. When the young one is full, it becomes
 * the old one, and the old one is forgotten.
 */
export class RecentValues<T> {
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  /** @param size the most keys in each generation */
  constructor(private readonly size: number) {}

  /** The value of a key, if it is kept. It moves to the young generation. */
  get(key: string): T | undefined {
    return this.#young.get(key) ?? this.#rejuvenated(key);
  }

  set(key: string, value: T): void {
    if (this.#young.size >= this.size && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** Every value that is kept; for a key the latest. */
  *values(): Iterable<T> {
    yield* this.#young.values();
    for (const [key, value] of this.#old) if (!this.#young.has(key)) yield value;
  }

  #rejuvenated(key: string): T | undefined {
    const value = this.#old.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }
}
