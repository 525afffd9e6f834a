import { jest } from '@jest/globals';
import { RE2Set } from 're2js';

import { parseSettings } from '../../../src/config/settings.js';
import { DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import { calendarOf, ownLimit } from '../../../src/limiter/limits.js';
import { parseRules } from '../../../src/rules/parse-rules.js';
import { RuleSet } from '../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../src/rules/rules.js';
import { doubtsAbout } from '../../../src/rules/doubtful-rules.js';
import { KeyPatterns, problemOfPattern } from '../../../src/rules/key-patterns.js';
import { Random } from '../../support/chaos/random.js';
import { extent } from '../../support/extent.js';
import { words } from '../../support/words.js';

const DEFAULTS = defaultPolicy(parseSettings({}));

function ruleSet(...rules: object[]): RuleSet {
  return new RuleSet(parseRules(JSON.stringify({ keys: rules })), DEFAULTS);
}

test('a key without a matching rule has the defaults', () => {
  expect(ruleSet({ key_pattern: 'a', window_millis: 5 }).policyOf('b')).toEqual(DEFAULTS);
  expect(ruleSet().policyOf('b')).toEqual(DEFAULTS);
});

test('all matching rules apply, in the order of the file, field by field', () => {
  const rules = ruleSet(
    { key_pattern: '.*', key_pattern_is_regex: true, max_requests_per_window: 7, name: 'all' },
    { key_pattern: 'a.*', key_pattern_is_regex: true, window_millis: 50, shadow: true },
    { key_pattern: 'ab', max_requests_per_window: 0, requests_can_set_rate: false },
    { key_pattern: 'b', max_requests_in_queue: 1 },
  );
  expect(rules.policyOf('ab')).toEqual({
    ...DEFAULTS,
    limits: [ownLimit(50, 0)],
    // The rates that requests set before no longer count.
    ceilings: { maxRequests: -1, maxRequestsInQueue: 100_000, windowMillis: 31_622_400_000 },
    requestsCanSetRate: false,
    isShadow: true,
    isKnown: true,
    hasRuledMaximum: true,
    ruleName: 'all',
    // 50 ms are not a whole number of seconds.
    item: '"all";q=0',
  });
  expect(rules.matching('ab').map(({ index }) => index)).toEqual([0, 1, 2]);
});

test('a later list of further limits replaces an earlier one as a whole, and an empty one removes it', () => {
  const all = { key_pattern: '.*', key_pattern_is_regex: true };
  const day = { name: 'day', max_hits_per_window: 9, window_millis: 86_400_000 };
  const hour = { name: 'hour', max_requests_per_window: 3, window_millis: 3_600_000 };
  const rules = ruleSet(
    { ...all, limits: [day, { ...hour, releases_return: false }] },
    { key_pattern: 'a', limits: [hour] },
    { key_pattern: 'b', limits: [] },
    { key_pattern: 'c', max_requests_per_window: 7 },
  );
  const furtherOf = (key: string) => rules.policyOf(key).limits.slice(1);
  const algorithm = DEFAULT_ALGORITHM;
  const ofDay = { name: 'day', windowMillis: 86_400_000, maximum: 9, counts: 'hits', algorithm };
  const ofHour = {
    name: 'hour',
    windowMillis: 3_600_000,
    maximum: 3,
    counts: 'requests',
    algorithm,
  };
  expect(furtherOf('a')).toEqual([{ ...ofHour, keepsReleased: false }]);
  expect(furtherOf('b')).toEqual([]);
  expect(furtherOf('c')).toEqual([
    { ...ofDay, keepsReleased: false },
    { ...ofHour, keepsReleased: true },
  ]);
  expect(['a', 'b', 'c'].map((key) => rules.policyOf(key).item)).toEqual([
    '"default";q=100;w=1, "hour";q=3;w=3600',
    '"default";q=100;w=1',
    '"default";q=7;w=1, "day";q=9;w=86400, "hour";q=3;w=3600',
  ]);
});

test('an algorithm with its numbers replaces an earlier one as a whole, and stays with other fields', () => {
  const all = { key_pattern: '.*', key_pattern_is_regex: true };
  const rules = ruleSet(
    { ...all, algorithm: 'token_bucket', burst: 5 },
    { key_pattern: 'a', max_requests_per_window: 7 },
    { key_pattern: 'b', algorithm: 'token_bucket' },
    { key_pattern: 'c', algorithm: 'sliding_window', steps: 20 },
    { key_pattern: 'd', algorithm: 'sliding_window' },
    { key_pattern: 'e', algorithm: 'fixed_window' },
  );
  const ownOf = (key: string) => rules.policyOf(key).limits[0];
  expect(ownOf('a')).toEqual(ownLimit(1000, 7, { name: 'token_bucket', burst: 5 }));
  expect(['b', 'c', 'd', 'e'].map((key) => ownOf(key).algorithm)).toEqual([
    { name: 'token_bucket', burst: 1 },
    { name: 'sliding_window', steps: 20 },
    { name: 'sliding_window', steps: 10 },
    DEFAULT_ALGORITHM,
  ]);
});

test('a calendar replaces window_millis and an algorithm, and is replaced by each of them', async () => {
  const all = { key_pattern: '.*', key_pattern_is_regex: true };
  const rules = await RuleSet.load(
    parseRules(
      JSON.stringify({
        keys: [
          { ...all, algorithm: 'token_bucket', burst: 5, window_millis: 500 },
          { ...all, calendar: 'month', time_zone: 'Europe/Berlin' },
          { key_pattern: 'more', max_requests_per_window: 7 },
          { key_pattern: 'week', calendar: 'week' },
          { key_pattern: 'length', window_millis: 5000 },
          { key_pattern: 'steps', algorithm: 'sliding_window', window_millis: 5000 },
          { key_pattern: 'no length', algorithm: 'fixed_window' },
        ],
      }),
    ),
    defaultPolicy(parseSettings({})),
  );
  const DAY = 86_400_000;
  const berlin = { unit: 'month', timeZone: 'Europe/Berlin' };
  const own = (key: string) => rules.policyOf(key).limits[0];
  expect(own('other')).toMatchObject({ windowMillis: 31 * DAY, algorithm: { calendar: berlin } });
  expect(own('more')).toMatchObject({ maximum: 7, algorithm: { calendar: berlin } });
  expect(own('week')).toMatchObject({
    windowMillis: 7 * DAY,
    algorithm: { name: 'fixed_window', calendar: { unit: 'week', timeZone: 'UTC' } },
  });
  expect(own('length')).toMatchObject({ windowMillis: 5000, algorithm: DEFAULT_ALGORITHM });
  expect(own('steps')).toMatchObject({
    windowMillis: 5000,
    algorithm: { name: 'sliding_window', steps: 10 },
  });
  // As long as the longest month: less would loosen the limit.
  expect(own('no length')).toMatchObject({ windowMillis: 31 * DAY, algorithm: DEFAULT_ALGORITHM });
});

test('limits of the same calendar share it', async () => {
  const daily = { name: 'daily', max_requests_per_window: 7, calendar: 'day' };
  const load = (rule: object): Promise<RuleSet> =>
    RuleSet.load(
      parseRules(JSON.stringify({ keys: [{ key_pattern: 'a', ...rule }] })),
      defaultPolicy(parseSettings({})),
    );
  const rules = await load({ calendar: 'day', limits: [daily] });
  const [own, further] = rules.policyOf('a').limits;
  expect(calendarOf(own)).toBeDefined();
  expect(calendarOf(further!)).toBe(calendarOf(own));
});

test('the algorithm of the settings applies to keys without one in a rule', () => {
  const settings = parseSettings({ ALGORITHM: 'token_bucket', BURST: '3' });
  const rules = new RuleSet(
    parseRules(JSON.stringify({ keys: [{ key_pattern: 'a', max_requests_per_window: 7 }] })),
    defaultPolicy(settings),
  );
  const algorithm = { name: 'token_bucket', burst: 3 };
  expect(rules.policyOf('a').limits).toEqual([
    ownLimit(1000, 7, { ...algorithm, name: 'token_bucket' }),
  ]);
  expect(rules.policyOf('b').limits).toMatchObject([{ maximum: 100, algorithm }]);
});

test('an expression has to match the whole key, and a key is not an expression', () => {
  const rules = ruleSet(
    { key_pattern: 'a|b', key_pattern_is_regex: true, max_requests_per_window: 1 },
    { key_pattern: 'c.', max_requests_per_window: 2 },
  );
  const known = ['a', 'b', 'ab', 'xa', 'a\n', 'c.', 'cc'].filter(
    (key) => rules.policyOf(key).isKnown,
  );
  expect(known).toEqual(['a', 'b', 'c.']);
});

test('the last rule with a max_wait_millis applies, 0 included', () => {
  const rules = ruleSet(
    { key_pattern: '[ab]', key_pattern_is_regex: true, max_wait_millis: 1500 },
    { key_pattern: 'a', max_requests_per_window: 1 },
    { key_pattern: 'b', max_wait_millis: 0 },
  );
  expect(['a', 'b', 'c'].map((key) => rules.policyOf(key).maxWaitMillis)).toEqual([1500, 0, 0]);
});

test('keys of the same rules share one policy', () => {
  const rules = ruleSet({ key_pattern: 'a.*', key_pattern_is_regex: true, window_millis: 9 });
  expect(rules.policyOf('a1')).toBe(rules.policyOf('a2'));
  expect(rules.policyOf('a1')).toBe(rules.policyOf('a1'));
});

test('names of prototypes are keys like any other', () => {
  const rules = ruleSet({ key_pattern: '__proto__', window_millis: 9 });
  expect(rules.policyOf('__proto__').limits[0].windowMillis).toBe(9);
  expect(rules.policyOf('constructor')).toEqual(DEFAULTS);
});

test('an expression that would hang a backtracking engine does not', () => {
  const rules = ruleSet(
    { key_pattern: '(a+)+b', key_pattern_is_regex: true, window_millis: 9 },
    { key_pattern: '(x|xx)*y', key_pattern_is_regex: true, window_millis: 9 },
  );
  expect(rules.policyOf('a'.repeat(512)).isKnown).toBe(false);
  expect(rules.policyOf('x'.repeat(512)).isKnown).toBe(false);
  expect(rules.policyOf('a'.repeat(511) + 'b').isKnown).toBe(true);
});

describe('the digest', () => {
  const rule = { key_pattern: 'a', window_millis: 9 };

  test('depends on the rules, not on their format', () => {
    const inYaml = new RuleSet(parseRules('keys:\n- window_millis: 9\n  key_pattern: a'), DEFAULTS);
    expect(inYaml.digest).toBe(ruleSet(rule).digest);
  });

  test('changes with a value and with the order', () => {
    const other = { key_pattern: 'b' };
    const digests = [ruleSet(), ruleSet(rule), ruleSet(rule, other), ruleSet(other, rule)];
    expect(new Set(digests.map(({ digest }) => digest)).size).toBe(4);
  });
});

function doubts(...rules: object[]): string[] {
  return doubtsAbout(new RuleSet(parseRules(JSON.stringify({ keys: rules })), DEFAULTS));
}

const expression = (key_pattern: string, effects: object = {}): object => ({
  key_pattern,
  key_pattern_is_regex: true,
  ...effects,
});

test.each(['tenant-.*', 'a.+b', '^a', 'a$', 'tenant-*'])(
  'a key %s that looks like an expression is doubtful',
  (pattern) => {
    expect(doubts({ key_pattern: pattern, name: 'all' })).toEqual([
      `rule 1 all, key "${pattern}", matches no other key than that text; did you mean key_pattern_is_regex: true?`,
    ]);
    expect(doubts(expression(pattern.replace('-*', '-.*')))).toEqual([]);
  },
);

test.each(['a.b', 'edge:route=login', 'GET /users?a[]=1', '/a/*/b', 'a|b'])(
  'a key %s is not doubtful',
  (pattern) => {
    expect(doubts({ key_pattern: pattern })).toEqual([]);
  },
);

test.each(['.*', '^.*$', '.+', '(?s).*', '.{1,512}', '(.*)'])(
  'a rule %s for every key is doubtful behind rules whose fields it overrides',
  (pattern) => {
    const all = expression(pattern, { max_requests_per_window: 9, window_millis: 5 });
    const first = { key_pattern: 'a', max_requests_per_window: 1 };
    const second = { key_pattern: 'b', window_millis: 1, shadow: true };

    expect(doubts(first, second, all)).toEqual([
      `rule 3, expression "${pattern}", matches every key and overrides max_requests_per_window, window_millis ` +
        'of 2 earlier rules; later rules win: did you mean to put it first?',
    ]);
    expect(doubts(all, first, second)).toEqual([]);
  },
);

test('a rule for every key is not doubtful behind rules with other fields', () => {
  const first = { key_pattern: 'a', name: 'a', max_requests_per_window: 1 };
  expect(doubts(first, expression('.*', { name: 'all', shadow: true }))).toEqual([]);
});

test('a rule for most keys is not doubtful', () => {
  const first = { key_pattern: 'a', max_requests_per_window: 1 };
  for (const pattern of ['.*:.*', '[^:]*', '\\w.*', '.{3,}']) {
    expect(doubts(first, expression(pattern, { max_requests_per_window: 2 }))).toEqual([]);
  }
});

test('hundreds of doubtful rules are ten lines and their number', () => {
  const rules = Array.from({ length: 300 }, (_, i) => ({ key_pattern: `a${i}.*` }));
  const lines = doubts(...rules);
  expect(lines).toHaveLength(11);
  expect(lines[10]).toBe('290 more rules are doubtful in these ways');
});

describe('patterns of keys', () => {
  const ROUNDS = extent(500, 3000);

  afterEach(() => {
    jest.restoreAllMocks();
  });

  const asExpression = (pattern: string) => ({
    key_pattern: pattern,
    key_pattern_is_regex: true,
  });
  const expressions = (...patterns: string[]): KeyPatterns =>
    new KeyPatterns(patterns.map(asExpression));

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
          (pattern) => problemOfPattern(asExpression(pattern)) === undefined,
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
        Array.from({ length: 80 }, () => `:SVC${random.whole(0, 29)}:`).join(
          random.pick(['', ' ']),
        ),
      );
    }
    const states = steps.mock.contexts.map(
      (set) => (set as { dfa: { stateCount: number } }).dfa.stateCount,
    );
    expect(Math.max(...states)).toBeLessThan(100);
  });
});
