import fc from 'fast-check';
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
const values = fc.constantFrom('', 'x', 'xy', 'x+y', 'x*', '*', 'x*y*', '*,y', 'x,y', 'yx');
const limits = fc.record({
  requests_per_unit: fc.nat({ max: 9 }),
  unit: fc.constantFrom('second', 'minute', 'HOUR'),
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
const asked = fc.array(
  fc.record({ key: keys, value: fc.constantFrom('', 'x', 'xy', 'x+y', 'x,y', 'yx', 'xayb', 'z') }),
  { minLength: 1, maxLength: 3 },
);

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

  expect(warnings.map(({ file, line, problem }) => `${file}:${line}: ${problem}`)).toEqual([
    '1.yaml:3: replaces has no counterpart: a request is checked against the limits of all its descriptors',
    '1.yaml:3: share_threshold has no counterpart: each value that the wildcard matches has a limit of its own',
    '1.yaml:3: requests_per_unit becomes 1000000000, the most that a rule may have',
    '1.yaml:8: quota_mode has no counterpart: the limit denies like any other',
    '1.yaml:8: detailed_metric has no counterpart: metrics are counted by rule',
    '1.yaml:12: value_to_metric has no counterpart: metrics are counted by rule',
    '1.yaml:12: metadata has no counterpart: answers carry none',
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
])('%j is an error that names its place', (yaml, problem) => {
  expect(() => imported(yaml)).toThrow(new Error(problem));
});
