import { parseSettings } from '../../../src/config/settings.js';
import { parseRules } from '../../../src/rules/parse-rules.js';
import type { KeyPolicy } from '../../../src/rules/policy.js';
import { RuleSet } from '../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../src/rules/rules.js';

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

  test.each([{}, { fair: false }])('of %j is one list', (queue) => {
    expect(policyOf('a', { ...ALL, queue }).queueOrder).toBeUndefined();
  });

  const CHARACTERS = 'must be 1 to 32 of a-z 0-9 _ -, and begin with a letter or a digit';
  const named = (...names: unknown[]) => ({ lanes: names.map((name) => ({ name })) });
  test.each<[queue: unknown, problem: string]>([
    ['fair', 'queue must be an object with lanes, or with fair: true'],
    [{ ...LANES, fair: true }, 'queue must have either lanes or fair: true'],
    [{ lanes: {} }, 'queue.lanes must be a list'],
    [named(), 'queue.lanes must have at least one lane'],
    [named('a', 'b', 'c', 'd', 'e', 'f'), 'queue.lanes must have at most 5 lanes'],
    [named('a', 'b', 'a'), 'queue.lanes must have lanes with different names'],
    [{ lanes: ['a'] }, 'queue.lanes[0] must be an object with name'],
    [named(7), 'queue.lanes[0].name must be a string'],
    [named('Users'), `queue.lanes[0].name ${CHARACTERS}`],
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
    [['batch'], { fair: true }, ' must have queue with these lanes in the same rule'],
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
