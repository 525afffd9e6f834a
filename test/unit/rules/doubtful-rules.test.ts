import { parseSettings } from '../../../src/config/settings.js';
import { doubtsAbout } from '../../../src/rules/doubtful-rules.js';
import { parseRules } from '../../../src/rules/parse-rules.js';
import { RuleSet } from '../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../src/rules/rules.js';

const DEFAULTS = defaultPolicy(parseSettings({}));

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

test('thousands of doubtful rules are ten lines and their number', () => {
  const rules = Array.from({ length: 2000 }, (_, i) => ({ key_pattern: `a${i}.*` }));
  const lines = doubts(...rules);
  expect(lines).toHaveLength(11);
  expect(lines[10]).toBe('1990 more rules are doubtful in these ways');
});
