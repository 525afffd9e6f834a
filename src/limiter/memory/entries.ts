/**
 * The entries of keys. The last look-up is remembered: a request asks for its key more than once, and a look-up in a large map
 * is not cheap.
 */
export class Entries<Entry> extends Map<string, Entry> {
  #lastKey: string | undefined;
  #lastEntry: Entry | undefined;

  override get(key: string): Entry | undefined {
    if (key !== this.#lastKey) {
      this.#lastKey = key;
      this.#lastEntry = super.get(key);
    }
    return this.#lastEntry;
  }

  override set(key: string, entry: Entry): this {
    this.#lastKey = undefined;
    return super.set(key, entry);
  }

  override delete(key: string): boolean {
    this.#lastKey = undefined;
    return super.delete(key);
  }

  override clear(): void {
    this.#lastKey = undefined;
    super.clear();
  }
}
