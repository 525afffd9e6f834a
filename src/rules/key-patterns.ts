import { RE2JS, RE2Set } from 're2js';

/** A counted repetition costs as much as what it repeats, so many times. */
const MAX_PATTERN_LENGTH = 1024;

export interface KeyPattern {
  readonly pattern: string;
  /** A regular expression that has to match the whole key; else the key itself. */
  readonly isRegex: boolean;
}

/**
 * What is wrong with a pattern, for the end of a sentence; undefined where it can be used. Expressions have RE2's
 * syntax: https://github.com/google/re2/wiki/Syntax
 */
export function problemOfPattern({ pattern, isRegex }: KeyPattern): string | undefined {
  if (!isRegex) return undefined;
  if (pattern.length > MAX_PATTERN_LENGTH) {
    return `must have at most ${MAX_PATTERN_LENGTH} characters`;
  }
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    return `must be a regular expression of RE2: ${(error as Error).message}`;
  }
}

/**
 * Finds which of many patterns match a key. All expressions are one machine: a thousand take little longer than one,
 * and none takes longer than in proportion to the key's length.
 */
export class KeyPatterns {
  readonly #expressions = new RE2Set(RE2Set.ANCHOR_BOTH);
  /** The place in the list of each expression, by its number in the machine. */
  readonly #placesOfExpressions = new Map<number, number>();
  readonly #placesByKey = new Map<string, number[]>();

  /** @param patterns without problems */
  constructor(patterns: readonly KeyPattern[]) {
    for (const [place, { pattern, isRegex }] of patterns.entries()) {
      if (isRegex) {
        this.#placesOfExpressions.set(this.#expressions.add(pattern), place);
        continue;
      }
      const places = this.#placesByKey.get(pattern);
      if (places) places.push(place);
      else this.#placesByKey.set(pattern, [place]);
    }
    this.#expressions.compile();
  }

  /** @returns the places in the list of those that match, in their order */
  matching(key: string): number[] {
    const places = new Set(this.#placesByKey.get(key));
    const matched = this.#placesOfExpressions.size > 0 ? this.#expressions.match(key) : [];
    for (const number of matched) {
      const place = this.#placesOfExpressions.get(number);
      if (place !== undefined) places.add(place);
    }
    return [...places].sort((a, b) => a - b);
  }
}
