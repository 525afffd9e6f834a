import { stringify } from 'yaml';

import { parseSettings } from '../../../src/config/settings.js';
import { keyTemplate } from '../../../src/grpc/key-template.js';
import { UNIT_MILLIS } from '../../../src/grpc/messages.js';
import {
  type ConfiguredDescriptor,
  parseLimitsFile,
} from '../../../src/import/envoy-ratelimit/limits-file.js';
import { rulesOfLimits } from '../../../src/import/envoy-ratelimit/rules-of-limits.js';
import { parseRules } from '../../../src/rules/parse-rules.js';
import { RuleSet } from '../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../src/rules/rules.js';
import { extent } from '../../support/extent.js';
import { limitByEnvoy } from '../../support/import/envoy-lookup.js';
import fc from '../../support/properties.js';

const keyOf = keyTemplate('{domain}:{entries}');
const UNLIMITED = { maximum: 1_000_000_000, windowMillis: 1000, isShadow: false };

const UNLIMITED_RULE = { max_requests_per_window: 1_000_000_000, window_millis: 1000 };
const A_MINUTE = { rate_limit: { unit: 'minute', requests_per_unit: 5 } };
const FIVE_A_MINUTE = { max_requests_per_window: 5, window_millis: 60_000 };

const imported = (...files: readonly string[]) =>
  rulesOfLimits(files.map((yaml, i) => parseLimitsFile(yaml, `${i + 1}.yaml`)));

/** What applies to keys by the rules that are printed. */
async function policiesBy(yaml: string): Promise<(key: string) => object> {
  const rules = parseRules(stringify({ keys: imported(yaml).rules }));
  const set = await RuleSet.load(rules, defaultPolicy(parseSettings({})));
  return (key) => {
    const { limits, isShadow } = set.policyOf(key);
    const [{ maximum, windowMillis }] = limits;
    return { maximum, windowMillis, isShadow };
  };
}

/** Few texts, so that descriptors often match. */
const keys = fc.constantFrom('a', 'b.c');
const values = fc.constantFrom('', 'x', 'xy', 'x+y', 'x*', '*', 'x*y*', '*,y', 'x,y', '*5', '7*');
const limits = fc.record({
  requests_per_unit: fc.nat({ max: 9 }),
  unit: fc.constantFrom('second', 'minute', 'HOUR', 'Day'),
});
const descriptors = (depth: number): fc.Arbitrary<ConfiguredDescriptor[]> =>
  fc.uniqueArray(
    fc.record<ConfiguredDescriptor>(
      {
        key: keys,
        value: values,
        rate_limit: fc.oneof(limits, fc.constant({ unlimited: true })) as fc.Arbitrary<
          ConfiguredDescriptor['rate_limit']
        >,
        shadow_mode: fc.boolean(),
        ...(depth > 1 && { descriptors: descriptors(depth - 1) }),
      },
      { requiredKeys: ['key'] },
    ),
    { maxLength: 5, selector: ({ key, value = '' }) => `${key}=${value}` },
  );
/** Too long for a key. */
const LONG = '7'.repeat(600);
const askedValues = ['', 'x', 'xy', 'x+y', 'x,y', 'yx', 'xayb', 'z', '%', '5', LONG, `x${LONG}y5`];
const asked = fc.array(fc.record({ key: keys, value: fc.constantFrom(...askedValues) }), {
  minLength: 1,
  maxLength: 3,
});

test('the rules limit each descriptor as the configuration does', async () => {
  await fc.assert(
    fc.asyncProperty(
      descriptors(3),
      fc.array(asked, { minLength: 10, maxLength: 10 }),
      async (configured, requests) => {
        const policyOf = await policiesBy(stringify({ domain: 'd', descriptors: configured }));
        for (const entries of requests) {
          const limit = limitByEnvoy(configured, entries);
          const unit = limit?.unit?.toUpperCase() as keyof typeof UNIT_MILLIS | undefined;
          const expected = unit && {
            maximum: limit?.requests_per_unit,
            windowMillis: UNIT_MILLIS[unit],
            isShadow: limit?.isShadow,
          };
          const isShadow = limit?.isShadow ?? false;
          expect(policyOf(keyOf('d', entries))).toEqual(expected ?? { ...UNLIMITED, isShadow });
        }
      },
    ),
    { numRuns: extent(100, 2000) },
  );
});

test('files of one domain become one list of rules', () => {
  const limited = (key: string) => stringify({ domain: 'd', descriptors: [{ key, ...A_MINUTE }] });
  const { rules } = imported(limited('a'), limited('b'));

  expect(rules).toEqual([
    { key_pattern: 'd:.*', key_pattern_is_regex: true, name: 'unlimited', ...UNLIMITED_RULE },
    { key_pattern: 'd:a=[^,]*', key_pattern_is_regex: true, name: 'd.a', ...FIVE_A_MINUTE },
    { key_pattern: 'd:b=[^,]*', key_pattern_is_regex: true, name: 'd.b', ...FIVE_A_MINUTE },
  ]);
});

describe('a value whose middle is cut', () => {
  const between = (limit: object) =>
    policiesBy(
      stringify({
        domain: 'd',
        descriptors: [
          { key: 'a', rate_limit: { unit: 'hour', requests_per_unit: 9 } },
          { key: 'a', value: '/x/*admin*', ...limit },
        ],
      }),
    );
  const keyFor = (value: string) => keyOf('d', [{ key: 'a', value }]);

  test('is limited as one with the text between wildcards, which it may have', async () => {
    const policyOf = await between(A_MINUTE);

    expect(policyOf(keyFor(`/x/${LONG}`))).toMatchObject({ maximum: 5 });
    expect(policyOf(keyFor('/x/7'))).toMatchObject({ maximum: 9 });
    expect(policyOf(keyFor(`/y/${LONG}`))).toMatchObject({ maximum: 9 });
  });

  test('is not taken for one that is not limited', async () => {
    const policyOf = await between({ rate_limit: { unlimited: true } });

    expect(policyOf(keyFor(`/x/${LONG}`))).toMatchObject({ maximum: 9 });
    expect(policyOf(keyFor('/x/admin'))).toMatchObject({ maximum: UNLIMITED.maximum });
  });
});

test('texts of a limit of which a cut key may have too little are a warning', () => {
  const { warnings } = imported(
    stringify({
      domain: 'd',
      descriptors: [300, 100].map((length) => ({
        key: 'path',
        value: `/${'p'.repeat(length)}*`,
        descriptors: [{ key: 'user', ...A_MINUTE }],
      })),
    }),
  );

  expect(warnings).toEqual([
    '1.yaml:6: warning: long values may pass without this limit: its own texts are so long that a key, of 512 bytes, has too little of them',
  ]);
});

test('a limit by day is one of the days of the calendar, as in Envoy ratelimit', () => {
  const day = { unit: 'day', requests_per_unit: 5 };
  const { rules } = imported(
    stringify({ domain: 'd', descriptors: [{ key: 'a', rate_limit: day }] }),
  );

  expect(rules[1]).toEqual({
    key_pattern: 'd:a=[^,]*',
    key_pattern_is_regex: true,
    name: 'd.a',
    max_requests_per_window: 5,
    calendar: 'day',
  });
});

/** The pattern of the only limit for a value, as the file has it. */
function patternFor(value: string): string | undefined {
  const { rules } = imported(
    `domain: d\ndescriptors:\n  - key: a\n    value: ${value}\n    rate_limit: { unit: minute, requests_per_unit: 5 }`,
  );
  return rules[1]?.key_pattern;
}

test.each([
  ...['007', '02134', '+4915112345678', '1098765432109876543', '0x1F', '1_000', '-0b11', '0o17'],
  ...['True', 'yes', 'N', 'off', '2024-01-01', '1:30', '10.0.0.1', '1.2.3', '+', '0x', '_5'],
])('the value %s without quotes is that text', (value) => {
  expect(patternFor(value)).toBe(`d:a=${value}`);
});

test.each(['"1.0"', "'1.0'", '!!str 1.0'])('the value %s is the text 1.0', (value) => {
  expect(patternFor(value)).toBe('d:a=1.0');
});

test.each(['', '~', 'null', 'Null', '""'])('the value %s is none', (value) => {
  expect(patternFor(value)).toBe('d:a=[^,]*');
});

test.each(['1.0', '08', '1e3', '-.5', '.inf', '.NaN', '9223372036854775808', '1_0.5'])(
  'the value %s without quotes is an error, as in Envoy ratelimit',
  (value) => {
    expect(() => patternFor(value)).toThrow(
      new Error(
        `1.yaml:4:12: descriptors[0].value must be in quotes: Envoy ratelimit rejects the number ${value}`,
      ),
    );
  },
);

test.each([
  ['0x1F', 31],
  ['010', 8],
  ['1_000', 1000],
  ['~', 0],
])('requests_per_unit: %s are %d', (text, count) => {
  const { rules } = imported(
    `domain: d\ndescriptors: [{ key: a, rate_limit: { unit: hour, requests_per_unit: ${text} } }]`,
  );
  expect(rules[1]).toMatchObject({ max_requests_per_window: count });
});

test('booleans are those of YAML 1.1', () => {
  const { rules } = imported(
    'domain: d\ndescriptors: [{ key: a, shadow_mode: yes, rate_limit: { unlimited: On } }]',
  );
  expect(rules[1]).toMatchObject({ ...UNLIMITED_RULE, shadow: true });
});

test('in an object what comes later wins, merged or not, and limits are merged', () => {
  const { rules } = imported(`domain: d
descriptors:
  - &base { key: a, value: x, rate_limit: &limit { unit: minute, requests_per_unit: 5, name: of-a } }
  - <<: *base
    value: y
    rate_limit: { requests_per_unit: 7 }
  - { key: c, rate_limit: { requests_per_unit: 7, <<: *limit } }
  - { <<: [{ key: e }, *base], value: z }
  - { key: lost, <<: { key: f, value: x }, rate_limit: *limit }
`);

  expect(
    rules
      .slice(1)
      .map((rule) => [
        rule.key_pattern,
        rule.max_requests_per_window,
        rule.window_millis,
        rule.name,
      ]),
  ).toEqual([
    ['d:a=x', 5, 60_000, 'of-a'],
    ['d:a=y', 7, 60_000, 'of-a'],
    ['d:c=[^,]*', 5, 60_000, 'of-a'],
    ['d:e=z', 5, 60_000, 'of-a'],
    ['d:f=x', 5, 60_000, 'of-a'],
  ]);
});

test('the documents that Envoy Gateway makes are read, with a name each', () => {
  const listener = (name: string) => `name: ${name}
domain: ${name}
descriptors:
  - key: first-route
    value: first-route
    rate_limit: null
    descriptors:
      - key: rule-0-match-0
        value: rule-0-match-0
        rate_limit:
          requests_per_unit: 5
          unit: MINUTE
          unlimited: false
          name: ""
          replaces: []
        descriptors: []
        shadow_mode: false
        quota_mode: false
        detailed_metric: false
        value_to_metric: false
        share_threshold: false
    shadow_mode: false
`;
  const { rules, warnings } = imported(['one', 'two'].map(listener).join('---\n') + '---\n');

  expect(rules.filter(({ name }) => name !== 'unlimited')).toEqual(
    ['one', 'two'].map((domain) => ({
      key_pattern: `${domain}:first-route=first-route,rule-0-match-0=rule-0-match-0`,
      name: `${domain}.first-route_first-route.rule-0-match-0_rule-0-match-0`.slice(0, 64),
      ...FIVE_A_MINUTE,
    })),
  );
  expect(warnings).toEqual([
    '1.yaml:24: warning: Envoy ratelimit reads no more documents of a file than the first',
  ]);
});

test('a rule has the name of its limit, or else the path of its descriptor', () => {
  const { rules } = imported(
    stringify({
      domain: 'shop',
      descriptors: [
        { key: 'path', value: '/a b', ...A_MINUTE },
        { key: 'user', rate_limit: { ...A_MINUTE.rate_limit, name: 'users' } },
        { key: 'k'.repeat(99), ...A_MINUTE },
      ],
    }),
  );

  expect(rules.map(({ name }) => name)).toEqual([
    'unlimited',
    'shop.path_/a-b',
    'users',
    `shop.${'k'.repeat(59)}`,
  ]);
});

test('a field without a counterpart is a warning with its line', () => {
  const { warnings } = imported(`domain: d
descriptors:
  - key: a
    value: x*
    share_threshold: true
    rate_limit: { unit: minute, requests_per_unit: 4000000000, replaces: [{ name: other }] }
    descriptors:
      - key: b
        quota_mode: true
        detailed_metric: true
        rate_limit: { unit: minute, requests_per_unit: 1 }
      - { key: c, value_to_metric: true, metadata: { a: 1 } }
`);

  expect(warnings).toEqual([
    '1.yaml:3: warning: replaces has no counterpart: a request is checked against the limits of all its descriptors',
    '1.yaml:3: warning: share_threshold has no counterpart: each value that the wildcard matches has a limit of its own',
    '1.yaml:3: warning: requests_per_unit becomes 1000000000, the most that a rule may have',
    '1.yaml:8: warning: quota_mode has no counterpart: the limit denies like any other',
    '1.yaml:8: warning: detailed_metric has no counterpart: metrics are counted by rule',
    '1.yaml:12: warning: value_to_metric has no counterpart: metrics are counted by rule',
    '1.yaml:12: warning: metadata has no counterpart: answers carry none',
  ]);
});

test.each([
  ['descriptors: []', '1.yaml:1:1: domain must be a text'],
  ['domain: d\nlimits: []', '1.yaml:2:1: unknown field limits'],
  ['domain: d\ndescriptors:\n  - value: a', '1.yaml:3:5: descriptors[0].key must be a text'],
  [
    'domain: d\ndescriptors:\n  - key: a\n    ratelimit: {}',
    '1.yaml:4:5: unknown field ratelimit; did you mean rate_limit?',
  ],
  [
    'domain: d\ndescriptors:\n  - key: a\n    rate_limit: { unit: fortnight, requests_per_unit: 1 }',
    '1.yaml:4:25: descriptors[0].rate_limit.unit must be second, minute, hour, day, week, month, year',
  ],
  [
    'domain: d\ndescriptors:\n  - key: a\n    rate_limit: { unit: constructor, requests_per_unit: 1 }',
    '1.yaml:4:25: descriptors[0].rate_limit.unit must be second, minute, hour, day, week, month, year',
  ],
  [
    'domain: d\ndescriptors:\n  - key: a\n    rate_limit: { requests_per_unit: 1 }',
    '1.yaml:4:17: descriptors[0].rate_limit must have either unit or unlimited',
  ],
  [
    'domain: d\ndescriptors:\n  - key: a\n    descriptors:\n      - key: b\n      - key: b',
    '1.yaml:6:9: descriptors[0].descriptors[1] has the key and the value of another descriptor',
  ],
  [
    `domain: d\ndescriptors:\n  - key: ${'k'.repeat(1100)}\n    rate_limit: { unlimited: true }`,
    '1.yaml:3:5: descriptors[0] has keys whose pattern must have at most 1024 characters',
  ],
  ['domain: d\ndescriptors: *a', '1.yaml:2:14: must have an anchor before it'],
  ['domain: d\ndescriptors: &a [*a]', '1.yaml:2:18: is too deep or too large'],
  ['domain: d\ndescriptors:\n  - <<: 7', '1.yaml:3:9: must be an object, since it is merged'],
  ['domain: d\ndescriptors:\n  - __proto__: {}\n    key: a', '1.yaml:3:5: unknown field __proto__'],
])('%j is an error that names its place', (yaml, problem) => {
  expect(() => imported(yaml)).toThrow(new Error(problem));
});

test('all errors of all files are reported, each with its place', () => {
  const first = `domain: 1.5
descriptors:
  - key: a
    one: 1
    two: 2
  - value: [b]
---
domain: [d
---
domain: e
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: -1 } }
`;
  const second = 'domain: d\ndescriptors:\n  - &a { key: a }\n  - *a\n  - *a\n';

  expect(() => imported(first, second)).toThrow(
    new Error(
      [
        '1.yaml:1:9: domain must be in quotes: Envoy ratelimit rejects the number 1.5',
        '1.yaml:4:5: unknown field one',
        '1.yaml:5:5: unknown field two',
        '1.yaml:6:5: descriptors[1].key must be a text',
        '1.yaml:6:12: descriptors[1].value must be a text',
        '1.yaml:9:1: Flow sequence in block collection must be sufficiently indented and end with a ]',
        '1.yaml:12:59: descriptors[0].rate_limit.requests_per_unit must be at least 0',
        '2.yaml:4:5: descriptors[1] has the key and the value of another descriptor',
        '2.yaml:5:5: descriptors[2] has the key and the value of another descriptor',
      ].join('\n'),
    ),
  );
});
