import { parseRules } from '../../../src/rules/parse-rules.js';
import { extent } from '../../support/extent.js';
import { RulesError } from '../../../src/rules/positioned-yaml.js';
import { parseSettings } from '../../../src/config/settings.js';
import type { KeyPolicy } from '../../../src/rules/policy.js';
import { RuleSet } from '../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../src/rules/rules.js';
import fc from '../../support/properties.js';

/** GoCC's own example: https://gigurra.github.io/gocc/guide/configuration/ */
const GOCC = `{
  "keys": [
    {
      "key_pattern": "^premium-.*",
      "key_pattern_is_regex": true,
      "max_requests_per_window": 1000,
      "max_requests_in_queue": 500,
      "window_millis": 1000
    },
    {
      "key_pattern": "guest",
      "key_pattern_is_regex": false,
      "max_requests_per_window": 10,
      "max_requests_in_queue": 5,
      "window_millis": 60000
    }
  ]
}
`;

const YAML = `# The same.
keys:
  - key_pattern: ^premium-.*
    key_pattern_is_regex: true
    max_requests_per_window: 1000
    max_requests_in_queue: 500
    window_millis: 1000
  - key_pattern: guest
    max_requests_per_window: 10
    max_requests_in_queue: 5
    window_millis: 60000
`;

test("GoCC's files are accepted as they are", () => {
  expect({ keys: parseRules(GOCC) }).toEqual(JSON.parse(GOCC));
});

test('the same rules in YAML give the same result', () => {
  expect(parseRules(YAML)).toEqual(parseRules(GOCC));
});

test('JSON may be indented with tabs, or have no whitespace', () => {
  expect(parseRules(GOCC.replaceAll('  ', '\t'))).toEqual(parseRules(GOCC));
  expect(parseRules(JSON.stringify(JSON.parse(GOCC)))).toEqual(parseRules(GOCC));
});

test('an explicit 0 is a maximum', () => {
  const text =
    'keys: [{ key_pattern: a, max_requests_per_window: 0, max_requests_in_queue: 0, max_wait_millis: 0 }]';
  expect(parseRules(text)).toMatchObject([
    { max_requests_per_window: 0, max_requests_in_queue: 0, max_wait_millis: 0 },
  ]);
});

function expectRejected(text: string, line: number, column: number, problem: string): void {
  let error: unknown;
  try {
    parseRules(text, 'a.yaml');
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(RulesError);
  const message = `a.yaml:${line}:${column}: ${problem}`;
  expect(error).toMatchObject({ line, column, problem, message });
}

test.each([
  ['', 1, 1, 'the file must be an object with keys'],
  ['{}', 1, 1, 'keys must be a list'],
  ['keys: []\nrules: []', 2, 1, 'unknown field rules'],
  ['rules:\n  - key_pattern: a', 1, 1, 'unknown field rules; did you mean keys?'],
  ['key: []', 1, 1, 'unknown field key; did you mean keys?'],
  ['keys:\n  - 7', 2, 5, 'keys[0] must be an object with key_pattern'],
  ['keys:\n  - name: a', 2, 5, 'keys[0].key_pattern must be a string'],
  ['keys:\n  - keyPattern: a', 2, 5, 'unknown field keyPattern; did you mean key_pattern?'],
  ['keys:\n  - key_pattern: 007', 2, 18, 'keys[0].key_pattern must be a string, in quotes'],
  ['keys:\n  - key_pattern: true', 2, 18, 'keys[0].key_pattern must be a string, in quotes'],
  ['keys: []\nkeys: []', 2, 1, 'Map keys must be unique'],
])('%j is rejected with its place in the file', expectRejected);

test.each([
  ['"b\\n\\e": 7', 5, 'unknown field b\\u000a\\u001b'],
  ['max_wait_milli: 7', 5, 'unknown field max_wait_milli; did you mean max_wait_millis?'],
  ['limits: [{ window_milis: 7 }]', 16, 'unknown field window_milis; did you mean window_millis?'],
])('a rule with %j is rejected with its place in the file', (field, column, problem) => {
  expectRejected(`keys:\n  - key_pattern: a\n    ${field}`, 3, column, problem);
});

test.each([
  ['window_millis: 0', 20, 'a whole number from 1 to 31622400000'],
  ['max_requests_per_window: 1.5', 30, 'a whole number from 0 to 1000000000'],
  ['max_wait_millis: -1', 22, 'a whole number from 0 to 31622400000'],
  ['max_corrected_hits: 0', 25, 'a whole number from 1 to 1000000000'],
  ['shadow: maybe', 13, 'true or false'],
  ['algorithm: gcra', 16, 'one of fixed_window, sliding_window, token_bucket'],
  ['steps: 61', 12, 'a whole number from 2 to 60'],
  ['burst: 0', 12, 'a whole number from 1 to 1000000000'],
])('a rule with %j is rejected with what the field takes', (field, column, takes) => {
  const problem = `keys[0].${field.split(':')[0]} must be ${takes}`;
  expectRejected(`keys:\n  - key_pattern: a\n    ${field}`, 3, column, problem);
});

test.each([
  ['"a(b"', 'missing closing ): `a(b`'],
  ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
])('the expression %s is rejected with its fault', (pattern, fault) => {
  const text = `keys:\n  - key_pattern: ${pattern}\n    key_pattern_is_regex: true`;
  const must = 'must be a regular expression of RE2: error parsing regexp';
  expectRejected(text, 2, 18, `keys[0].key_pattern ${must}: ${fault}`);
});

describe('further limits', () => {
  const HOUR = { name: 'hour', max_requests_per_window: 9, window_millis: 3_600_000 };
  const parse = (limits: unknown) =>
    parseRules(JSON.stringify({ keys: [{ key_pattern: 'a', limits }] }));

  test('count requests or hits, and releases return unless the file says otherwise', () => {
    const hits = { name: 'day.1_a-b', max_hits_per_window: 1, window_millis: 1 };
    expect(parse([HOUR, { ...hits, releases_return: false }])).toEqual([
      {
        key_pattern: 'a',
        key_pattern_is_regex: false,
        limits: [
          { ...HOUR, releases_return: true },
          { ...hits, releases_return: false },
        ],
      },
    ]);
    expect(parse([])).toMatchObject([{ limits: [] }]);
  });

  test.each<[unknown, string]>([
    [HOUR, '.limits must be a list'],
    [[7], '.limits[0] must be an object with name, a maximum, and window_millis or calendar'],
    [
      [1, 2, 3, 4, 5].map((i) => ({ ...HOUR, name: `hour-${i}` })),
      '.limits must have at most 4 limits',
    ],
    [[HOUR, { ...HOUR, window_millis: 1 }], '.limits must have limits with different names'],
  ])('of %j are rejected', (limits, problem) => {
    expect(() => parse(limits)).toThrow(`keys[0]${problem}`);
  });

  const NAMED = '.name must be 1 to 32 letters, digits, or any of _ . -';
  const EITHER = ' must have either max_requests_per_window or max_hits_per_window';
  test.each<[field: object, problem: string]>([
    [{ max_hits_per_window: 3 }, EITHER],
    [{ name: 'default' }, ".name must not be default, which is the name of the key's own maximum"],
    [{ name: 'a b' }, NAMED],
    [{ name: 'x'.repeat(33) }, NAMED],
    [
      { max_requests_per_window: 0 },
      '.max_requests_per_window must be a whole number from 1 to 1000000000',
    ],
    [
      { max_requests_per_window: undefined, max_hits_per_window: 1_000_000_001 },
      '.max_hits_per_window must be a whole number from 1 to 1000000000',
    ],
    [{ window_millis: '1h' }, '.window_millis must be a whole number from 1 to 31622400000'],
    [{ window_millis: undefined }, ' must have either window_millis or calendar'],
    [{ releases_return: 'no' }, '.releases_return must be true or false'],
  ])('with %p are rejected', (field, problem) => {
    expect(() => parse([{ ...HOUR, ...field }])).toThrow(`keys[0].limits[0]${problem}`);
  });
});

const BESIDE_STEPS = 'steps must have algorithm: sliding_window beside it';
const BESIDE_BURST = 'burst must have algorithm: token_bucket beside it';

describe('an algorithm', () => {
  const LIMIT = { name: 'hour', window_millis: 3_600_000 };
  const parse = (fields: object) =>
    parseRules(JSON.stringify({ keys: [{ key_pattern: 'a', ...fields }] }));

  test.each([
    { algorithm: 'fixed_window', max_requests_per_window: 7 },
    { algorithm: 'sliding_window', max_requests_per_window: 7 },
    { algorithm: 'sliding_window', steps: 60, max_requests_per_window: 7 },
    { algorithm: 'token_bucket', burst: 7, max_requests_per_window: 7 },
  ])('can be %j, of a rule and of its limits', (fields) => {
    expect(parse(fields)).toMatchObject([fields]);
    expect(parse({ limits: [{ ...LIMIT, ...fields }] })).toMatchObject([{ limits: [fields] }]);
  });

  test.each<[fields: object, problem: string]>([
    [{ steps: 5 }, BESIDE_STEPS],
    [{ algorithm: 'fixed_window', steps: 5 }, `${BESIDE_STEPS}, not fixed_window`],
    [{ algorithm: 'token_bucket', steps: 5 }, `${BESIDE_STEPS}, not token_bucket`],
    [{ burst: 5 }, BESIDE_BURST],
    [{ algorithm: 'sliding_window', burst: 5 }, `${BESIDE_BURST}, not sliding_window`],
    [
      { algorithm: 'token_bucket', burst: 8 },
      'burst must be at most max_requests_per_window, 7, not 8',
    ],
  ])('with %j is rejected, of a rule and of its limits', (fields, problem) => {
    const limited = { ...fields, max_requests_per_window: 7 };
    expect(() => parse(limited)).toThrow(`keys[0].${problem}`);
    expect(() => parse({ limits: [{ ...LIMIT, ...limited }] })).toThrow(
      `keys[0].limits[0].${problem}`,
    );
  });

  test('of a limit of hits is rejected with a burst above these', () => {
    const limit = { ...LIMIT, algorithm: 'token_bucket', burst: 8, max_hits_per_window: 7 };
    expect(() => parse({ limits: [limit] })).toThrow(
      'keys[0].limits[0].burst must be at most max_hits_per_window, 7, not 8',
    );
  });

  test('that does not have a field is an error at the value of the field', () => {
    const text = 'keys:\n  - key_pattern: a\n    algorithm: token_bucket\n    steps: 5';
    expectRejected(text, 4, 12, `keys[0].${BESIDE_STEPS}, not token_bucket`);
  });
});

describe('a calendar', () => {
  const LIMIT = { name: 'daily', max_requests_per_window: 7 };
  const parse = (fields: object) =>
    parseRules(JSON.stringify({ keys: [{ key_pattern: 'a', ...fields }] }));

  test.each([
    { calendar: 'day' },
    { calendar: 'week', time_zone: 'Europe/Berlin' },
    { calendar: 'month', time_zone: 'UTC', algorithm: 'fixed_window' },
  ])('can be %j, of a rule and of its limits', (fields) => {
    expect(parse(fields)).toMatchObject([fields]);
    expect(parse({ limits: [{ ...LIMIT, ...fields }] })).toMatchObject([{ limits: [fields] }]);
  });

  test('has a time zone in any case of its letters', () => {
    expect(parse({ calendar: 'day', time_zone: 'europe/berlin' })).toMatchObject([
      { time_zone: 'Europe/Berlin' },
    ]);
  });

  test.each<[fields: object, problem: string]>([
    [{ calendar: 'year' }, 'calendar must be one of day, week, month'],
    [{ calendar: 'day', window_millis: 1000 }, 'calendar must not have window_millis beside it'],
    [
      { calendar: 'day', algorithm: 'sliding_window' },
      'calendar must have algorithm: fixed_window beside it, or none, not sliding_window',
    ],
    [
      { calendar: 'day', algorithm: 'token_bucket' },
      'calendar must have algorithm: fixed_window beside it, or none, not token_bucket',
    ],
    [{ calendar: 'day', steps: 5 }, BESIDE_STEPS],
    [{ calendar: 'day', burst: 5 }, BESIDE_BURST],
    [{ time_zone: 'UTC', window_millis: 1000 }, 'time_zone must have calendar beside it'],
    [
      { calendar: 'day', time_zone: 'Europe/Berlim' },
      'time_zone must be a time zone such as Europe/Berlin; did you mean Europe/Berlin?',
    ],
    [{ calendar: 'day', time_zone: 2 }, 'time_zone must be a string'],
  ])('with %j is rejected, of a rule and of its limits', (fields, problem) => {
    expect(() => parse(fields)).toThrow(`keys[0].${problem}`);
    expect(() => parse({ limits: [{ ...LIMIT, ...fields }] })).toThrow(
      `keys[0].limits[0].${problem}`,
    );
  });

  test('with an unknown time zone is an error at its value', () => {
    const text = 'keys:\n  - key_pattern: a\n    calendar: day\n    time_zone: Tokio';
    const problem = 'must be a time zone such as Europe/Berlin; did you mean Asia/Tokyo?';
    expectRejected(text, 4, 16, `keys[0].time_zone ${problem}`);
  });
});

test('a limit may not have the name of any rule', () => {
  const limits = [{ name: 'minute', max_requests_per_window: 1, window_millis: 60_000 }];
  const rules = [{ key_pattern: 'a', limits }, { key_pattern: 'b' }];
  expect(parseRules(JSON.stringify({ keys: rules }))).toHaveLength(2);
  const named = [rules[0], { ...rules[1], name: 'minute' }];
  expect(() => parseRules(JSON.stringify({ keys: named }))).toThrow(
    'keys[0].limits[0].name must not be the name of a rule',
  );
});

test('aliases of aliases are rejected before they fill the memory', () => {
  const levels = 'abcdefghijk'.split('');
  const text = levels
    .map((name, i) => `${name}: &${name} [${`*${levels[i - 1] ?? ''},`.repeat(i === 0 ? 0 : 9)}]`)
    .join('\n');
  expect(() => parseRules(text)).toThrow(RulesError);
});

test('an error in any broken file is a RulesError with a place in the file', () => {
  const change = fc.record({
    at: fc.nat(GOCC.length - 1),
    length: fc.nat(20),
    text: fc.oneof(
      fc.string(),
      fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '*a', '&a', '\0'),
    ),
  });
  fc.assert(
    fc.property(fc.constantFrom(GOCC, YAML), change, (text, { at, length, text: other }) => {
      const broken = text.slice(0, at) + other + text.slice(at + length);
      try {
        parseRules(broken);
      } catch (error) {
        expect(error).toBeInstanceOf(RulesError);
        const { line, column, problem } = error as RulesError;
        expect(line).toBeGreaterThan(0);
        expect(line).toBeLessThanOrEqual(broken.split('\n').length);
        expect(column).toBeGreaterThan(0);
        expect(problem).not.toBe('');
      }
    }),
    { numRuns: extent(100, 500) },
  );
});

describe('fields of the queue', () => {
  const DEFAULTS = defaultPolicy(parseSettings({}));
  const ALL = { key_pattern: '.*', key_pattern_is_regex: true };
  const LANES = { lanes: [{ name: 'interactive', head_start_millis: 30_000 }, { name: 'batch' }] };
  const SHARE = { name: 'batch-share', max_requests_per_window: 4, window_millis: 60_000 };

  const textOf = (...rules: object[]): string => JSON.stringify({ keys: rules });
  const parse = (fields: object) => parseRules(textOf({ key_pattern: 'a', ...fields }));
  const policyOf = (key: string, ...rules: object[]): KeyPolicy =>
    new RuleSet(parseRules(textOf(...rules)), DEFAULTS).policyOf(key);

  describe('queue', () => {
    test('has lanes, of which those without a head start have none', () => {
      expect(policyOf('a', { ...ALL, queue: LANES }).queueOrder).toEqual({
        kind: 'lanes',
        lanes: [
          { name: 'interactive', headStartMillis: 30_000 },
          { name: 'batch', headStartMillis: 0 },
        ],
      });
    });

    test('has fair groups, which need no other field', () => {
      const queueOf = (queue: object) => policyOf('a', { ...ALL, queue }).queueOrder;
      expect(queueOf({ fair: true })).toEqual({
        kind: 'fair',
        maxRequestsInQueuePerGroup: undefined,
        weights: new Map(),
      });
      const fields = { max_requests_in_queue_per_group: 100, weights: { gold: 4, 7: 2 } };
      expect(queueOf({ fair: true, ...fields })).toEqual({
        kind: 'fair',
        maxRequestsInQueuePerGroup: 100,
        weights: new Map([
          ['gold', 4],
          ['7', 2],
        ]),
      });
    });

    test('has the names of groups as they are written, without quotes as well', () => {
      const yaml = `keys: [{ key_pattern: a, queue: { fair: true, weights: { 007: 2, True: 3 } } }]`;
      expect(parseRules(yaml)[0]?.queue?.weights).toEqual({ '007': 2, True: 3 });
    });

    test.each([{}, { fair: false }])('of %j is one list', (queue) => {
      expect(policyOf('a', { ...ALL, queue }).queueOrder).toBeUndefined();
    });

    const CHARACTERS = 'must be 1 to 32 of a-z 0-9 _ -, and begin with a letter or a digit';
    const named = (...names: unknown[]) => ({ lanes: names.map((name) => ({ name })) });
    test.each<[queue: unknown, problem: string]>([
      ['fair', 'queue must be an object with lanes, or with fair: true'],
      [{ lanes: {} }, 'queue.lanes must be a list'],
      [named(), 'queue.lanes must have at least one lane'],
      [named('a', 'b', 'c', 'd', 'e', 'f'), 'queue.lanes must have at most 5 lanes'],
      [named('a', 'b', 'a'), 'queue.lanes must have lanes with different names'],
      [{ lanes: ['a'] }, 'queue.lanes[0] must be an object with name'],
      [named(7), 'queue.lanes[0].name must be a string'],
      [named('-a'), `queue.lanes[0].name ${CHARACTERS}`],
      [named('a'.repeat(33)), `queue.lanes[0].name ${CHARACTERS}`],
      [
        { lanes: [{ name: 'a', head_start_millis: 86_400_001 }] },
        'queue.lanes[0].head_start_millis must be a whole number from 0 to 86400000',
      ],
      [{ weights: { gold: 4 } }, 'queue.weights must have fair: true beside it'],
      [
        { ...LANES, max_requests_in_queue_per_group: 4 },
        'queue.max_requests_in_queue_per_group must have fair: true beside it',
      ],
      [
        { fair: true, max_requests_in_queue_per_group: 0 },
        'queue.max_requests_in_queue_per_group must be a whole number from 1 to 100000',
      ],
      [{ fair: true, weights: [4] }, 'queue.weights must be an object'],
      [
        { fair: true, weights: { gold: 1001 } },
        'queue.weights.gold must be a whole number from 1 to 1000',
      ],
      ...['', 'é'.repeat(33), 'a\nb'].map((group): [object, string] => [
        { fair: true, weights: { [group]: 2 } },
        'queue.weights must have names of groups, each a text of 1 to 64 bytes of UTF-8 without control characters',
      ]),
    ])('of %j is rejected', (queue, problem) => {
      expect(() => parse({ queue })).toThrow(`keys[0].${problem}`);
    });

    test('with an unknown field is rejected with the field that is meant', () => {
      const text =
        'keys:\n  - key_pattern: a\n    queue: { lanes: [{ name: a, headstart_millis: 5 }] }';
      expect(() => parseRules(text, 'a.yaml')).toThrow(
        'a.yaml:3:33: unknown field headstart_millis; did you mean head_start_millis?',
      );
    });

    test('of a later rule replaces an earlier one as a whole, and stays with other fields', () => {
      const rules = [
        { ...ALL, queue: { fair: true, weights: { gold: 4 } } },
        { key_pattern: 'more', max_requests_in_queue: 7 },
        { key_pattern: 'lanes', queue: LANES },
        { key_pattern: 'equal', queue: { fair: true } },
        { key_pattern: 'one list', queue: {} },
      ];
      const orderOf = (key: string) => policyOf(key, ...rules).queueOrder;
      expect(orderOf('more')).toMatchObject({ kind: 'fair', weights: new Map([['gold', 4]]) });
      expect(orderOf('lanes')).toMatchObject({ kind: 'lanes' });
      expect(orderOf('equal')).toMatchObject({ kind: 'fair', weights: new Map() });
      expect(orderOf('one list')).toBeUndefined();
    });
  });

  describe('a limit of each group', () => {
    const FAIR = { fair: true };
    const limited = (more: object, queue: object | undefined = FAIR) => ({
      queue,
      limits: [{ ...SHARE, ...more }],
    });

    test('has the maxima of groups that differ, and lanes may be inside the groups', () => {
      const more = { per: 'group', maxima: { gold: 9, '': 0 } };
      const policy = policyOf('a', { ...ALL, ...limited(more, { ...LANES, ...FAIR }) });
      const maxima = new Map(Object.entries(more.maxima));
      expect(policy.limits[1]).toMatchObject({ perGroup: { maxima } });
      expect(policy.queueOrder).toMatchObject({ kind: 'fair', lanes: [{}, {}] });
    });

    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`g${i}`, 1]));
    test.each<[more: object, queue: object | undefined, problem: string]>([
      [{ per: 'lane' }, FAIR, 'per must be group'],
      [{ per: 'group' }, undefined, 'per must have queue with fair: true in the same rule'],
      [{ per: 'group' }, LANES, 'per must have queue with fair: true in the same rule'],
      [{ maxima: { a: 1 } }, FAIR, 'maxima must have per: group beside it'],
      [{ per: 'group', maxima: { a: -1 } }, FAIR, 'maxima.a must be a whole number from 0'],
      [{ per: 'group', maxima: { ['a'.repeat(65)]: 1 } }, FAIR, 'maxima must have names of groups'],
      [{ per: 'group', maxima: many }, FAIR, 'maxima must have at most 100 groups'],
      [
        { per: 'group', maxima: { ['__proto__']: 1 } },
        FAIR,
        'maxima must not name a group __proto__',
      ],
      [{ per: 'group', maxima: [1] }, FAIR, 'maxima must be an object'],
    ])('with %j and the queue %j is rejected', (more, queue, problem) => {
      const rule = { ...limited(more), queue };
      expect(() => parse(rule)).toThrow(`keys[0].limits[0].${problem}`);
    });
  });

  describe('lanes of a limit', () => {
    const limited = (lanes: unknown, queue?: object) => ({ queue, limits: [{ ...SHARE, lanes }] });

    test('are lanes of the queue of the same rule', () => {
      const [own, share] = policyOf('a', { ...ALL, ...limited(['batch'], LANES) }).limits;
      expect([own.lanes, share?.lanes]).toEqual([undefined, ['batch']]);
    });

    test.each<[lanes: unknown, queue: object | undefined, problem: string]>([
      ['batch', LANES, ' must be a list'],
      [[], LANES, ' must have at least one lane'],
      [['batch', 'batch'], LANES, ' must have different lanes'],
      [
        ['batch', 'bulk'],
        LANES,
        "[1] must be a lane of the rule's queue, one of interactive, batch, not bulk",
      ],
      [['batch'], undefined, ' must have queue with these lanes in the same rule'],
      [['batch'], { ...LANES, fair: true }, ' must not be in a rule whose queue has fair: true'],
    ])('of %j with the queue %j are rejected', (lanes, queue, problem) => {
      expect(() => parse(limited(lanes, queue))).toThrow(`keys[0].limits[0].lanes${problem}`);
    });

    const LATER = [
      {
        ...ALL,
        queue: LANES,
        limits: [
          { ...SHARE, lanes: ['batch'] },
          { ...SHARE, name: 'all' },
        ],
      },
      { key_pattern: 'same', queue: { lanes: [{ name: 'batch' }, { name: 'night' }] } },
      { key_pattern: 'other', queue: { lanes: [{ name: 'night' }] } },
      { key_pattern: 'groups', queue: { fair: true } },
    ];
    test.each([
      ['without queue', ['batch-share', 'all']],
      ['same', ['batch-share', 'all']],
      ['other', ['all']],
      ['groups', ['all']],
    ])('of an earlier rule: the key %j has the limits %j', (key, names) => {
      const [, ...further] = policyOf(key, ...LATER).limits;
      expect(further.map(({ name }) => name)).toEqual(names);
    });
  });

  test('the digest knows weights and head starts', () => {
    const digestOf = (queue: object): string =>
      new RuleSet(parseRules(textOf({ ...ALL, queue })), DEFAULTS).digest;
    const digests = [2, 3].flatMap((n) => [
      digestOf({ fair: true, weights: { gold: n } }),
      digestOf({ lanes: [{ name: 'a', head_start_millis: n }] }),
    ]);
    expect(new Set(digests).size).toBe(4);
  });
});
