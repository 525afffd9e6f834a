/** The maximum per window of each key, and of each further limit of a key: `limitOf` is its name. */
export type Maxima = Readonly<Record<string, number>>;

/** Maxima that rules have given, and when some replica may have gone by them. Times are ms since 1970. */
interface Generation {
  readonly maxima: Maxima;
  readonly since: number;
  /** Infinite while they are not replaced for good. */
  until: number;
}

/** The maxima of a round's keys, as the rules file has changed them. */
export class MaximaInForce {
  readonly #generations: Generation[];

  constructor(first: Maxima) {
    this.#generations = [{ maxima: first, since: 0, until: Infinity }];
  }

  /**
   * To be called right before the rules file has these maxima.
   * @returns a function to call when no replica, and no call under way, knows earlier maxima any more
   */
  change(maxima: Maxima): () => void {
    const replaced = this.#generations.filter(({ until }) => until === Infinity);
    this.#generations.push({ maxima, since: Date.now(), until: Infinity });
    return () => {
      for (const generation of replaced) generation.until = Date.now();
    };
  }

  /** The greatest maximum that a key may have had at any time of a span. */
  highest(key: string, from: number, to: number): number {
    return Math.max(0, ...this.#of(key, from, to));
  }

  /** Whether a key may have had this maximum at any time of a span. */
  allows(key: string, maximum: number, from: number, to: number): boolean {
    return this.#of(key, from, to).includes(maximum);
  }

  /** Whether some replicas may have gone by other rules than others at any time of a span. */
  isChangingIn(from: number, to: number): boolean {
    return this.#in(from, to).length > 1;
  }

  #of(key: string, from: number, to: number): number[] {
    return this.#in(from, to).map(({ maxima }) => maxima[key] ?? 0);
  }

  #in(from: number, to: number): Generation[] {
    return this.#generations.filter(({ since, until }) => since <= to && until >= from);
  }
}
