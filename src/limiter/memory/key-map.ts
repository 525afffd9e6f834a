/**
 * A map of keys that remembers its last look-up: a request asks for its key more than once, and a look-up in a large map
 * is not cheap.
 */
export class KeyMap<Value> extends Map<string, Value> {
  #lastKey: string | undefined;
  #lastValue: Value | undefined;

  override get(key: string): Value | undefined {
    if (key !== this.#lastKey) {
      this.#lastKey = key;
      this.#lastValue = super.get(key);
    }
    return this.#lastValue;
  }

  override set(key: string, value: Value): this {
    this.#lastKey = undefined;
    return super.set(key, value);
  }

  override delete(key: string): boolean {
    this.#lastKey = undefined;
    this.#lastValue = undefined;
    return super.delete(key);
  }

  override clear(): void {
    this.#lastKey = undefined;
    this.#lastValue = undefined;
    super.clear();
  }
}
