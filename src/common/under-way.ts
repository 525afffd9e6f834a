/** Work that is under way, by key. A second request for a key gets the work that is under way. */
export class UnderWay<T> {
  readonly #works = new Map<string, Promise<T>>();

  /** The work under way for a key; undefined if there is none. */
  get(key: string): Promise<T> | undefined {
    return this.#works.get(key);
  }

  /** Joins the work of a key, or begins it. */
  join(key: string, begin: () => Promise<T>): Promise<T> {
    const underWay = this.#works.get(key);
    if (underWay) return underWay;
    const work = begin();
    this.#works.set(key, work);
    const end = (): void => void this.#works.delete(key);
    work.then(end, end);
    return work;
  }
}
