import { RE2JS, RE2Set } from 're2js';

import { type KeyShape, shapeOf } from './key-shape.js';

/** A counted repetition costs as much as its content written that many times, so patterns are short. */
const MAX_PATTERN_LENGTH = 1024;

export interface KeyPattern {
  readonly pattern: string;
  /** Whether the pattern is a regular expression that has to match the whole key. Otherwise it is the key itself. */
  readonly isRegex: boolean;
}

/**
 * What is wrong with a pattern, for the end of a sentence; undefined if it is valid. Expressions have RE2's
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

/** About how many bytes the automata of all expressions may take, and the least for one automaton. */
const MEMORY = 32 * 1024 * 1024;
const LEAST_MEMORY = 16 * 1024;

/**
 * Finds which of many patterns match a key, with an automaton for each: one automaton for all would have a state for
 * each set of patterns that a key has matched so far, which are 2^30 for thirty patterns like `.*:name:.*`. Nearly all
 * keys are decided by the shape of the pattern alone. The time of an automaton is linear in the key's length.
 */
export class KeyPatterns {
  readonly #expressions: readonly Expression[];
  readonly #indexesByKey = new Map<string, number[]>();

  /** @param patterns without problems */
  constructor(patterns: readonly KeyPattern[]) {
    const expressions = [...patterns.entries()].filter(([, { isRegex }]) => isRegex);
    const memory = Math.max(LEAST_MEMORY, MEMORY / expressions.length);
    this.#expressions = expressions.map(
      ([index, { pattern }]) => new Expression(index, pattern, memory),
    );
    for (const [index, { pattern, isRegex }] of patterns.entries()) {
      if (isRegex) continue;
      const indexes = this.#indexesByKey.get(pattern);
      if (indexes) indexes.push(index);
      else this.#indexesByKey.set(pattern, [index]);
    }
  }

  /** @returns the indexes of the matching patterns, in their order */
  matching(key: string): number[] {
    const indexes = [...(this.#indexesByKey.get(key) ?? [])];
    const hasLineBreak = key.includes('\n');
    for (const expression of this.#expressions) {
      if (expression.matches(key, hasLineBreak)) indexes.push(expression.index);
    }
    return indexes.sort((a, b) => a - b);
  }
}

class Expression {
  readonly #shape: KeyShape;
  /** Undefined if the shape alone decides. */
  readonly #automaton: RE2Set | undefined;

  constructor(
    readonly index: number,
    pattern: string,
    memory: number,
  ) {
    this.#shape = shapeOf(pattern);
    if (this.#shape.isAll) return;
    this.#automaton = new RE2Set(RE2Set.ANCHOR_BOTH, 0, memory);
    this.#automaton.add(pattern);
    this.#automaton.compile();
  }

  matches(key: string, hasLineBreak: boolean): boolean {
    if (!this.#shape.fits(key)) return false;
    return this.#automaton ? this.#automaton.match(key).length > 0 : !hasLineBreak;
  }
}
