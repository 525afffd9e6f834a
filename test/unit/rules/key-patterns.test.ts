import { jest } from '@jest/globals';
import { RE2Set } from 're2js';

import { KeyPatterns, problemOfPattern } from '../../../src/rules/key-patterns.js';
import { Random } from '../../support/chaos/random.js';
import { extent } from '../../support/extent.js';
import { words } from '../../support/words.js';

const ROUNDS = extent(500, 3000);

afterEach(() => {
  jest.restoreAllMocks();
});

const expressions = (...patterns: string[]): KeyPatterns =>
  new KeyPatterns(patterns.map((pattern) => ({ pattern, isRegex: true })));

/** The result of one automaton for all expressions, without shapes. */
function matchedByOne(patterns: readonly string[], key: string): number[] {
  const set = new RE2Set(RE2Set.ANCHOR_BOTH);
  for (const pattern of patterns) set.add(pattern);
  return set.match(key);
}

describe('an expression matches the same keys as RE2', () => {
  /** Parts of expressions, so few that keys made of them match often. */
  const ATOMS = words(String.raw`
    a b : - ab a:b 1 é 😀 K { } ] , {,2} . .* .* .*? .+ ^ $ [ab] [^a] []a] [^]a] [[:alpha:]]
    [\]b] [a(|] \. \\ \* \[ \( \| \$ \- \d \w \b \B \A \z \Qa.b*\E \Qa \pL \p{Greek} \x61
    \x{61} \141 \n | (?i) (?s) (?U) (?m) (?i:a (?P<n> (?<n> ( (?: (?-s: ) )
  `).concat(' ', '\n');
  const REPEATS = words('* + ? *? {2} {0} {0,1} {1,} {a {1').concat(Array<string>(6).fill(''));
  const LETTERS = words(String.raw`a b A : - 1 . * \ é 😀 K k`).concat(' ', '\n', '\u212a');
  const KEY_PARTS = words('ab a:b a.b* { } ] [ ( | $ , {,2}').concat(LETTERS, '\ud83d');

  const joined = (random: Random, most: number, pieces: readonly string[]): string =>
    Array.from({ length: random.whole(0, most) }, () => random.pick(pieces)).join('');
  /** Some expressions have only texts and gaps, with keys of the same few letters. */
  const GAPPED = ['a', 'b', '.*'];
  const expressionOf = (random: Random): string =>
    random.chance(0.3)
      ? joined(random, 5, GAPPED)
      : Array.from(
          { length: random.whole(1, 8) },
          () => random.pick(ATOMS) + random.pick(REPEATS),
        ).join('');
  /** Often close to a match: the text of the expression, with changes. */
  const keyFor = (expression: string, random: Random): string =>
    random.chance(0.5)
      ? joined(random, 6, random.chance(0.5) ? ['a', 'a', 'b', '\n'] : KEY_PARTS)
      : expression
          .replace(/\.\*\??|\(\?.?:?|[\\()^$?]/g, () =>
            random.chance(0.7) ? '' : random.pick(KEY_PARTS),
          )
          .replace(/[a-z]/g, (letter) => (random.chance(0.1) ? letter.toUpperCase() : letter));

  test.each([1, 2])('with seed %i', (seed) => {
    const random = new Random(seed);
    const wrong: object[] = [];
    let matched = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const patterns = Array.from({ length: 3 }, () => expressionOf(random)).filter(
        (pattern) => problemOfPattern({ pattern, isRegex: true }) === undefined,
      );
      const matcher = expressions(...patterns);
      for (const key of patterns.flatMap((pattern) => [
        keyFor(pattern, random),
        keyFor(pattern, random),
      ])) {
        const places = matcher.matching(key);
        const expected = matchedByOne(patterns, key);
        matched += places.length;
        if (places.join() !== expected.join()) wrong.push({ patterns, key, places, expected });
      }
    }
    expect(wrong).toEqual([]);
    expect(matched).toBeGreaterThan(ROUNDS / 3);
  });
});

test('no automaton runs for a key that lacks the texts of an expression, or if the texts decide', () => {
  const automaton = jest.spyOn(RE2Set.prototype, 'match');
  const patterns = expressions(
    '.*:svc1:.*',
    'tenant-[0-9]+:(?:read|write)',
    '^user\\.[^:]+$',
    'a.*z',
  );
  const keys = ['x:svc1:y', 'tenant-1', 'tenantx:', 'users:', 'az', 'a:z\n', ':svc1:\n'];
  expect(keys.map((key) => patterns.matching(key))).toEqual([[0], [], [], [], [3], [], []]);
  expect(automaton).not.toHaveBeenCalled();

  expect(patterns.matching('tenant-7:read')).toEqual([1]);
  expect(automaton).toHaveBeenCalledTimes(1);
});

test('many expressions with parts in one key do not make a state for each set of expressions', () => {
  // The expressions have no text that occurs in all matches.
  const patterns = Array.from({ length: 30 }, (_, i) => `(?i).*:svc${i}:.*`);
  const steps = jest.spyOn(RE2Set.prototype, 'match');
  const matcher = expressions(...patterns);
  const random = new Random(1);
  for (let i = 0; i < 50; i += 1) {
    matcher.matching(
      Array.from({ length: 80 }, () => `:SVC${random.whole(0, 29)}:`).join(random.pick(['', ' '])),
    );
  }
  const states = steps.mock.contexts.map(
    (set) => (set as { dfa: { stateCount: number } }).dfa.stateCount,
  );
  expect(Math.max(...states)).toBeLessThan(100);
});
