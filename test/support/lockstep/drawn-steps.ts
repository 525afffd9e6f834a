import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { FurtherLimit } from '../limits.js';
import fc from '../properties.js';
import { KEYS } from './step.js';

/** Limits that differ by their prototypes alone, as drawn records may, count as others. */
const PLAIN = { noNullPrototype: true };

export const algorithm: fc.Arbitrary<Algorithm> = fc.oneof(
  fc.constant(DEFAULT_ALGORITHM),
  fc.record(
    { name: fc.constant('sliding_window' as const), steps: fc.constantFrom(2, 3, 10, 60) },
    PLAIN,
  ),
  fc.record(
    { name: fc.constant('token_bucket' as const), burst: fc.integer({ min: 1, max: 4 }) },
    PLAIN,
  ),
);

const furtherLimit = (name: string, kind: fc.Arbitrary<Algorithm>): fc.Arbitrary<FurtherLimit> =>
  fc.record(
    {
      name: fc.constant(name),
      windowMillis: fc.constantFrom(30, 100, 250, 700),
      maximum: fc.integer({ min: 1, max: 5 }),
      algorithm: kind,
      counts: fc.constantFrom('hits', 'requests'),
      keepsReleased: fc.boolean(),
    },
    PLAIN,
  );

export const further = (kind: fc.Arbitrary<Algorithm>) =>
  fc.oneof(
    fc.constant(undefined),
    fc.tuple(furtherLimit('a', kind)),
    fc.tuple(furtherLimit('b', kind)),
    fc.tuple(furtherLimit('a', kind), furtherLimit('b', kind)),
  );

const key = fc.nat({ max: KEYS - 1 });
const hits = fc.constantFrom(undefined, undefined, undefined, 2, 2, 3, 4, 6);
const holdMillis = fc.constantFrom(undefined, undefined, undefined, 30, 100, 150, 450);

/** Hardly ever what other times are, since the order at one moment is nobody's promise. */
const keepMillis = fc.option(fc.integer({ min: 1, max: 450 }), { freq: 2, nil: undefined });
const answerMillis = fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, fc.constant(0), {
  weight: 2,
  arbitrary: fc.integer({ min: 1, max: 300 }),
});

/** Each of the terms of a check. */
export const terms = {
  canWait: fc.boolean(),
  noPlace: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  maxWaitMillis: fc.option(
    fc.oneof(fc.nat({ max: 450 }), fc.constantFrom(99, 100, 101, 200, 300)),
    { nil: undefined },
  ),
  keepMillis,
  answerMillis,
  hits,
  holdMillis,
  holder: fc.constantFrom(undefined, 'a', 'a', 'b'),
  list: fc.constant<QueueList | undefined>(undefined),
  takesRest: fc.constantFrom(undefined, undefined, true),
  maxRequests: fc.option(fc.integer({ min: 1, max: 5 }), { freq: 4, nil: undefined }),
  maxRequestsInQueue: fc.option(fc.nat({ max: 5 }), { freq: 4, nil: undefined }),
  windowMillis: fc.constantFrom(undefined, undefined, undefined, undefined, 30, 100, 250),
};

export const report = fc.record({
  kind: fc.constant('report' as const),
  key,
  report: fc.record({
    limit: fc.constantFrom(undefined, undefined, undefined, 'a', 'a', 'b'),
    remaining: fc.nat({ max: 4 }),
    resetMillis: fc.constantFrom(undefined, 1, 30, 60, 100, 130, 250, 900),
  }),
});

export const refund = fc.record({
  kind: fc.constant('refund' as const),
  key,
  hits: fc.integer({ min: 1, max: 4 }),
});

export const disconnect = fc.record({
  kind: fc.constant('disconnect' as const),
  which: fc.nat({ max: 4 }),
});

/** Of an approval or a wait. */
export const end = fc.record({
  kind: fc.constantFrom(
    'release' as const,
    'release' as const,
    'giveBack' as const,
    'endHold' as const,
  ),
  which: fc.nat({ max: 4 }),
});

export const comeBack = fc.record({
  kind: fc.constant('return' as const),
  which: fc.nat({ max: 3 }),
  changes: fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    {
      weight: 3,
      arbitrary: fc.record({ keepMillis, answerMillis, maxWaitMillis: terms.maxWaitMillis }),
    },
    fc.record(terms, { requiredKeys: [] }),
  ),
});

const advance = fc.record({
  kind: fc.constant('advance' as const),
  millis: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.constantFrom(99, 100, 101, 399, 400, 401)),
});

export const stepsOfRules = [
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('check' as const),
      key,
      named: fc.constantFrom(undefined, undefined, undefined, 0, 0, 1),
      isNew: fc.constant(false),
      terms: fc.record(terms),
    }),
  },
  { weight: 1, arbitrary: comeBack },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('peek' as const),
      key,
      hits,
      holdMillis,
      isChecked: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('status' as const), which: fc.nat({ max: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.oneof(
      disconnect,
      end,
      fc.record({
        kind: fc.constant('pause' as const),
        key,
        millis: fc.constantFrom(0, 30, 100, 150, 450),
        canShorten: fc.boolean(),
      }),
      report,
      refund,
      fc.record({
        kind: fc.constant('amend' as const),
        which: fc.nat({ max: 4 }),
        amendment: fc.record({
          hits: fc.option(fc.nat({ max: 6 }), { freq: 2, nil: undefined }),
          holdMillis,
          maxHits: fc.option(fc.integer({ min: 1, max: 5 }), { freq: 2, nil: undefined }),
          maxHoldMillis: fc.constantFrom(undefined, undefined, 0, 100, 350),
        }),
      }),
    ),
  },
  { weight: 2, arbitrary: advance },
];

export const otherLimits = (kind: fc.Arbitrary<Algorithm>) =>
  fc.record({
    kind: fc.constant('limit' as const),
    key,
    limits: fc.record({
      windowMillis: fc.constantFrom(30, 100, 150, 400),
      maxRequests: fc.nat({ max: 4 }),
      maxRequestsInQueue: fc.nat({ max: 4 }),
      algorithm: kind,
      further: further(kind),
      ceilings: fc.option(
        fc.record({
          maxRequests: fc.integer({ min: -1, max: 5 }),
          maxRequestsInQueue: fc.integer({ min: -1, max: 5 }),
          windowMillis: fc.constantFrom(-1, 30, 100, 200, 1000),
        }),
        { nil: undefined },
      ),
    }),
  });
