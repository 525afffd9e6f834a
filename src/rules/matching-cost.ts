import { performance } from 'node:perf_hooks';

import { BOUNDS } from '../limiter/bounds.js';
import { type KeyPattern, KeyPatterns } from './key-patterns.js';

const { max: LONGEST } = BOUNDS.keyBytes;
const SHORT = 12;
/** Of these the fastest counts: another process may take the CPU for a while. */
const KEYS_OF_A_SHAPE = 3;
/** The expressions of which near misses are tried on all. */
const MOST_COSTLY = 10;
const LETTERS = Array.from('abcdefghijklmnopqrstuvwxyz0123456789');

/** What it takes to find the patterns that match a key which comes for the first time. */
export interface MatchingCost {
  readonly millis: number;
  /** The place in the list of the pattern that takes the longest. */
  readonly place: number;
}

/** Makes keys of random pieces, the same in each process. */
class KeyMaker {
  #state = 1;

  /** A key that no other is like. */
  key(pieces: readonly string[], length: number): string {
    let key = '';
    while (key.length < length) key += pieces[this.#below(pieces.length)] ?? '';
    return key.slice(0, length);
  }

  /** Of a linear congruential generator: https://en.wikipedia.org/wiki/Linear_congruential_generator */
  #below(count: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * count);
  }
}

/**
 * Measures it with keys of several kinds: short and long ones, and such as nearly match.
 * @param patterns without problems
 * @returns the cost of the kind that takes the longest; undefined without expressions
 */
export function measureMatching(patterns: readonly KeyPattern[]): MatchingCost | undefined {
  const places = [...patterns.keys()].filter((place) => patterns[place]?.isRegex);
  if (places.length === 0) return undefined;
  const maker = new KeyMaker();
  const keysOf = (pieces: readonly string[], length: number = LONGEST): string[] =>
    Array.from({ length: KEYS_OF_A_SHAPE }, () => maker.key(pieces, length));

  const alone = places
    .map((place) => {
      const { pattern } = patterns[place] ?? { pattern: '' };
      const pieces = piecesOf(pattern);
      const only = new KeyPatterns([{ pattern, isRegex: true }]);
      return { place, pieces, millis: timeOf(only, keysOf(pieces)) };
    })
    .sort((a, b) => b.millis - a.millis)
    .slice(0, MOST_COSTLY);

  const all = new KeyPatterns(patterns);
  const kinds = [
    () => keysOf(LETTERS, SHORT),
    () => keysOf(LETTERS),
    () => keysOf(alone.flatMap(({ pieces }) => pieces)),
    ...alone.map(
      ({ pieces }) =>
        () =>
          keysOf(pieces),
    ),
  ];
  for (const keys of kinds) timeOf(all, keys());
  const millis = Math.max(...kinds.map((keys) => timeOf(all, keys())));
  return { millis, place: alone[0]?.place ?? 0 };
}

/** The texts in an expression, and their characters: keys of them begin to match, and most do not. */
function piecesOf(pattern: string): string[] {
  const texts = pattern.replace(/\\[a-zA-Z]/g, ' ').match(/[^\s\\^$.|?*+()[\]{}]+/g) ?? [];
  const pieces = [...texts, ...new Set(texts.join(''))];
  return pieces.length > 0 ? pieces : LETTERS;
}

/** How long a key takes at least, in milliseconds. */
function timeOf(patterns: KeyPatterns, keys: readonly string[]): number {
  const times = keys.map((key) => {
    const begun = performance.now();
    patterns.matching(key);
    return performance.now() - begun;
  });
  return Math.min(...times);
}
