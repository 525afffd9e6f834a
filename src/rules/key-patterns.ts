import { RE2JS, RE2Set } from 're2js';

/** ASCII punctuation, which stands for itself after a backslash. */
const PUNCTUATION = String.raw`[!-\/:-@\[-\x60\{-~]`;

/**
 * The next part of an expression, by RE2's syntax: https://github.com/google/re2/wiki/Syntax. A character that may be
 * absent or repeated is no literal.
 */
const PART = new RegExp(
  [
    String.raw`(?<anything>\.\*\??)`,
    String.raw`(?:\\(?<escaped>${PUNCTUATION})|(?<literal>[ !"#%&',\-\/\w:;<=>@\x60~]))(?![*+?\{])`,
    String.raw`(?<open>\((?:\?:|(?!\?)))`,
    String.raw`(?<close>\))`,
    String.raw`(?<either>\|)`,
    // A repetition, a class, an escape, and any other character.
    String.raw`\{\d+(?:,\d*)?\}`,
    String.raw`\[\^?\]?(?:\[:\^?\w+:\]|\\[^]|[^\]\\])*\]`,
    String.raw`\\(?:[dDsSwWbBAz]|${PUNCTUATION})`,
    String.raw`[^\\\[\(]`,
  ].join('|'),
  'uy',
);

/** What keys must look like to match an expression. Checking it costs far less than the expression. */
interface KeyShape {
  /** Whether a key has everything that all matches have in common. */
  readonly fits: (key: string) => boolean;
  /** Whether the keys that fit and have no line break are exactly the matches. */
  readonly isAll: boolean;
}

const ANY: KeyShape = { fits: () => true, isAll: false };

/** @param expression without problems */
function shapeOf(expression: string): KeyShape {
  // A key is matched as a whole.
  const body = expression.replace(/^\^/, '').replace(/(?<!\\)\$$/, '');
  /** The literal texts, in order. The first begins a key, and the last ends it. */
  const texts: string[] = [];
  let current = '';
  let isAll = true;
  let depth = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < body.length) {
    const part = PART.exec(body)?.groups;
    // After a flag or a rare notation, the rest may mean anything.
    if (!part) return ANY;
    if (part.open !== undefined) depth += 1;
    if (part.close !== undefined) depth -= 1;
    if (part.either !== undefined && depth === 0) return ANY;
    const text = part.literal ?? part.escaped;
    if (depth === 0 && text !== undefined) {
      current += text;
      continue;
    }
    isAll &&= part.anything !== undefined;
    texts.push(current);
    current = '';
  }
  return { fits: fitting([...texts, current]), isAll };
}

/** @returns whether a key begins with the first text, ends with the last, and has the others in between, in order */
function fitting(texts: readonly string[]): KeyShape['fits'] {
  const [first = '', ...others] = texts;
  const last = others.pop();
  if (last === undefined) return (key) => key === first;
  const between = others.filter((text) => text !== '');
  return (key) => {
    if (!key.startsWith(first) || !key.endsWith(last)) return false;
    let position = first.length;
    for (const text of between) {
      const start = key.indexOf(text, position);
      if (start < 0) return false;
      position = start + text.length;
    }
    return position <= key.length - last.length;
  };
}

/** A counted repetition costs as much as its content written that many times, so patterns are short. */
const MAX_PATTERN_LENGTH = 1024;

/** As a rule has it. */
export interface KeyPattern {
  readonly key_pattern: string;
  /** Whether the pattern is a regular expression that has to match the whole key. Otherwise it is the key itself. */
  readonly key_pattern_is_regex?: boolean;
}

/**
 * What is wrong with a pattern, for the end of a sentence; undefined if it is valid. Expressions have RE2's
 * syntax: https://github.com/google/re2/wiki/Syntax
 */
export function problemOfPattern(given: KeyPattern): string | undefined {
  const { key_pattern: pattern, key_pattern_is_regex: isRegex } = given;
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
  readonly #expressions: readonly (readonly [index: number, matches: KeyShape['fits']])[];
  readonly #indexesByKey = new Map<string, number[]>();

  /** @param patterns without problems */
  constructor(patterns: readonly KeyPattern[]) {
    const expressions = [...patterns.entries()].filter(([, one]) => one.key_pattern_is_regex);
    const memory = Math.max(LEAST_MEMORY, MEMORY / expressions.length);
    this.#expressions = expressions.map(([index, { key_pattern: pattern }]) => [
      index,
      matcherOf(pattern, memory),
    ]);
    for (const [index, { key_pattern: pattern, ...one }] of patterns.entries()) {
      if (one.key_pattern_is_regex) continue;
      const indexes = this.#indexesByKey.get(pattern);
      if (indexes) indexes.push(index);
      else this.#indexesByKey.set(pattern, [index]);
    }
  }

  /** @returns the indexes of the matching patterns, in their order */
  matching(key: string): number[] {
    const indexes = [...(this.#indexesByKey.get(key) ?? [])];
    for (const [index, matches] of this.#expressions) if (matches(key)) indexes.push(index);
    return indexes.sort((a, b) => a - b);
  }
}

/** Returns whether keys match an expression. @param memory as of RE2 */
function matcherOf(expression: string, memory: number): KeyShape['fits'] {
  const { fits, isAll } = shapeOf(expression);
  if (isAll) return (key) => fits(key) && !key.includes('\n');
  const automaton = new RE2Set(RE2Set.ANCHOR_BOTH, 0, memory);
  automaton.add(expression);
  automaton.compile();
  return (key) => fits(key) && automaton.match(key).length > 0;
}
