import { performance } from 'node:perf_hooks';

import { BOUNDS } from '../limiter/bounds.js';
import { type KeyPattern, KeyPatterns } from './key-patterns.js';

const { max: LONGEST } = BOUNDS.keyBytes;
const SHORT = 12;
/** The fastest of these counts, since another process may take the CPU for a while. */
const KEYS_OF_A_SHAPE = 3;
/** For how many of the most costly expressions near misses are tried on all patterns. */
const MOST_COSTLY = 10;
const LETTERS = Array.from('abcdefghijklmnopqrstuvwxyz0123456789');

/**
 * Returns a function that builds keys from random pieces, the same in each process, by a linear congruential generator:
 * https://en.wikipedia.org/wiki/Linear_congruential_generator
 */
function keyMaker(): (pieces: readonly string[], length: number) => string {
  let state = 1;
  return (pieces, length) => {
    let key = '';
    while (key.length < length) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      key += pieces[Math.floor((state / 2 ** 32) * pieces.length)] ?? '';
    }
    return key.slice(0, length);
  };
}

/**
 * Measures the cost of finding the patterns that match a new key, with keys of several kinds: short keys, long keys, and near misses.
 * @param patterns without problems
 * @returns the cost of the kind that takes the longest, and the index of the pattern that does; undefined without expressions
 */
export function measureMatching(patterns: readonly KeyPattern[]) {
  const expressions = [...patterns.entries()].filter(([, one]) => one.key_pattern_is_regex);
  if (expressions.length === 0) return undefined;
  const keyOf = keyMaker();
  const keysOf = (pieces: readonly string[], length: number = LONGEST): string[] =>
    Array.from({ length: KEYS_OF_A_SHAPE }, () => keyOf(pieces, length));

  const alone = expressions
    .map(([index, expression]) => {
      const pieces = piecesOf(expression.key_pattern);
      const only = new KeyPatterns([expression]);
      return { index, pieces, millis: timeOf(only, keysOf(pieces)) };
    })
    .sort((a, b) => b.millis - a.millis)
    .slice(0, MOST_COSTLY);

  const all = new KeyPatterns(patterns);
  const kinds = [
    () => keysOf(LETTERS, SHORT),
    () => keysOf(LETTERS),
    () => keysOf(alone.flatMap(({ pieces }) => pieces)),
    ...alone.map((one) => () => keysOf(one.pieces)),
  ];
  for (const keys of kinds) timeOf(all, keys());
  const millis = Math.max(...kinds.map((keys) => timeOf(all, keys())));
  return { millis, index: alone[0]?.index ?? 0 };
}

/** The texts in an expression and their characters. Keys of these pieces begin to match, and mostly fail later. */
function piecesOf(pattern: string): string[] {
  const texts = pattern.replace(/\\[a-zA-Z]/g, ' ').match(/[^\s\\^$.|?*+()[\]{}]+/g) ?? [];
  const pieces = [...texts, ...new Set(texts.join(''))];
  return pieces.length > 0 ? pieces : LETTERS;
}

/** The least time for a key, in milliseconds. */
function timeOf(patterns: KeyPatterns, keys: readonly string[]): number {
  const times = keys.map((key) => {
    const begun = performance.now();
    patterns.matching(key);
    return performance.now() - begun;
  });
  return Math.min(...times);
}
