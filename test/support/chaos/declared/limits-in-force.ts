import { isDeepStrictEqual } from 'node:util';

import type { LimitInForce } from '../../../../src/limiter/limits.js';

/** The own limit of each key, and each further limit of a key: `limitOf` is its name. */
export type DeclaredLimits = Readonly<Record<string, LimitInForce>>;

/** Limits that rules have given, and when some replica may have gone by them. Times are ms since 1970. */
interface Generation {
  readonly limits: DeclaredLimits;
  readonly since: number;
  /** Infinite while they are not replaced for good. */
  until: number;
}

/** The limits of a round's keys, as the rules file has changed them. */
export class LimitsInForce {
  readonly #generations: Generation[];

  constructor(first: DeclaredLimits) {
    this.#generations = [{ limits: first, since: 0, until: Infinity }];
  }

  /**
   * To be called right before the rules file has these limits.
   * @returns a function to call when no replica, and no call under way, knows earlier limits any more
   */
  change(limits: DeclaredLimits): () => void {
    const replaced = this.#generations.filter(({ until }) => until === Infinity);
    this.#generations.push({ limits, since: Date.now(), until: Infinity });
    return () => {
      for (const generation of replaced) generation.until = Date.now();
    };
  }

  /** Whether a limit may have had this maximum at any time of a span. */
  allows(name: string, maximum: number, from: number, to: number): boolean {
    return this.#in(from, to).some(({ limits }) => limits[name]?.maximum === maximum);
  }

  /** Whether a limit may have been the same as this one at any time of a span. */
  declares(name: string, limit: LimitInForce, from: number, to: number): boolean {
    return this.#in(from, to).some(({ limits }) => isDeepStrictEqual(limits[name], limit));
  }

  /** Whether some replicas may have gone by other rules than others at any time of a span. */
  isChangingIn(from: number, to: number): boolean {
    return this.#in(from, to).length > 1;
  }

  #in(from: number, to: number): Generation[] {
    return this.#generations.filter(({ since, until }) => since <= to && until >= from);
  }
}
