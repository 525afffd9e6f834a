import { parseSettings } from '../../../src/config/settings.js';
import { calendarOf, FIXED_WINDOW, ownLimit } from '../../../src/limiter/limits.js';
import { parseRules } from '../../../src/rules/parse-rules.js';
import { RuleSet } from '../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../src/rules/rules.js';

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
  const algorithm = FIXED_WINDOW;
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
    FIXED_WINDOW,
  ]);
});

test('a further limit has an algorithm of its own', () => {
  const limit = { name: 'hour', max_hits_per_window: 9, window_millis: 3_600_000 };
  const rules = ruleSet({
    key_pattern: 'a',
    algorithm: 'sliding_window',
    limits: [limit, { ...limit, name: 'pace', algorithm: 'token_bucket', burst: 3 }],
  });
  expect(rules.policyOf('a').limits.map(({ algorithm }) => algorithm)).toEqual([
    { name: 'sliding_window', steps: 10 },
    FIXED_WINDOW,
    { name: 'token_bucket', burst: 3 },
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
  expect(own('length')).toMatchObject({ windowMillis: 5000, algorithm: FIXED_WINDOW });
  expect(own('steps')).toMatchObject({
    windowMillis: 5000,
    algorithm: { name: 'sliding_window', steps: 10 },
  });
  // As long as the longest month: less would loosen the limit.
  expect(own('no length')).toMatchObject({ windowMillis: 31 * DAY, algorithm: FIXED_WINDOW });
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

test('a later rule overrides an earlier one, even for the same key', () => {
  const rules = ruleSet(
    { key_pattern: 'a', max_requests_per_window: 1, shadow: true },
    { key_pattern: 'a', max_requests_per_window: 2, shadow: false },
  );
  expect(rules.policyOf('a')).toMatchObject({ limits: [{ maximum: 2 }], isShadow: false });
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
