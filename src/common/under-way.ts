/** Work that is under way, by key. What is asked for again meanwhile is the same work. */
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
