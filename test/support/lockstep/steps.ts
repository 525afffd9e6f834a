import fc from 'fast-check';

import type { Amendment, CheckRequest, RemainingReport } from '../../../src/limiter/limiter.js';
import { type Algorithm, FIXED_WINDOW } from '../../../src/limiter/limits.js';
import type { DeclaredLimits, FurtherLimit } from '../limits.js';

/** How many keys the steps are about. */
export const KEYS = 2;
/** How many request ids of each key callers choose. */
export const NAMES = 3;

/** What a check asks for. `holder` counts only with a hold, and what is kept only if the check can wait and has an id. */
export type Terms = Required<
  Pick<
    CheckRequest,
    | 'canWait'
    | 'noPlace'
    | 'maxWaitMillis'
    | 'keepMillis'
    | 'answerMillis'
    | 'hits'
    | 'holdMillis'
    | 'holder'
    | 'maxRequests'
    | 'maxRequestsInQueue'
    | 'windowMillis'
  >
>;

/** `which` counts back from the latest that the step may be about. */
export type Step =
  | {
      readonly kind: 'check';
      readonly key: number;
      /** Which of the key's ids its caller has chosen. */
      readonly named: number | undefined;
      /** It has another id if the request with that one is decided. */
      readonly isNew: boolean;
      readonly terms: Terms;
    }
  /** A further check with the id of an earlier one, and with its terms but for some. */
  | { readonly kind: 'return'; readonly which: number; readonly changes: Partial<Terms> }
  /** A peek, and then perhaps the same as a check. */
  | {
      readonly kind: 'peek';
      readonly key: number;
      readonly hits: number | undefined;
      readonly holdMillis: number | undefined;
      readonly isChecked: boolean;
    }
  /** Of one of the key's named requests, or of one of the approvals. */
  | { readonly kind: 'status'; readonly which: number }
  /** Of the caller of a check that is not decided. */
  | { readonly kind: 'disconnect'; readonly which: number }
  /** Of an approval, or of a request that waits and whose caller has chosen its id. */
  | { readonly kind: 'release'; readonly which: number }
  | { readonly kind: 'giveBack'; readonly which: number }
  /** Of an approval, which may not be held, or of a request whose place is kept. */
  | { readonly kind: 'endHold'; readonly which: number }
  | { readonly kind: 'amend'; readonly which: number; readonly amendment: Amendment }
  /** The process hands its kept places over, and their callers ask the process that replaces it. */
  | { readonly kind: 'handOver' }
  | { readonly kind: 'pause'; readonly key: number; readonly millis: number }
  | { readonly kind: 'report'; readonly key: number; readonly report: RemainingReport }
  | { readonly kind: 'advance'; readonly millis: number }
  /** A key has other limits from now on. */
  | { readonly kind: 'limit'; readonly key: number; readonly limits: DeclaredLimits };

export const algorithm: fc.Arbitrary<Algorithm> = fc.oneof(
  fc.constant(FIXED_WINDOW),
  fc.record({
    name: fc.constant('sliding_window' as const),
    steps: fc.constantFrom(2, 3, 10, 60),
  }),
  fc.record({ name: fc.constant('token_bucket' as const), burst: fc.integer({ min: 1, max: 4 }) }),
);

const furtherLimit = (name: string, kind: fc.Arbitrary<Algorithm>): fc.Arbitrary<FurtherLimit> =>
  fc.record({
    name: fc.constant(name),
    windowMillis: fc.constantFrom(30, 100, 250, 700),
    maximum: fc.integer({ min: 1, max: 5 }),
    algorithm: kind,
    counts: fc.constantFrom('hits', 'requests'),
    keepsReleased: fc.boolean(),
  });

const further = (kind: fc.Arbitrary<Algorithm>) =>
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
const terms = {
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
  maxRequests: fc.option(fc.integer({ min: 1, max: 5 }), { freq: 4, nil: undefined }),
  maxRequestsInQueue: fc.option(fc.nat({ max: 5 }), { freq: 4, nil: undefined }),
  windowMillis: fc.constantFrom(undefined, undefined, undefined, undefined, 30, 100, 250),
};

const report = fc.record({
  kind: fc.constant('report' as const),
  key,
  report: fc.record({
    limit: fc.constantFrom(undefined, undefined, undefined, 'a', 'a', 'b'),
    remaining: fc.nat({ max: 4 }),
    resetMillis: fc.constantFrom(undefined, 1, 30, 60, 100, 130, 250, 900),
  }),
});

const disconnect = fc.record({
  kind: fc.constant('disconnect' as const),
  which: fc.nat({ max: 4 }),
});

/** Of an approval or a wait. */
const end = fc.record({
  kind: fc.constantFrom(
    'release' as const,
    'release' as const,
    'giveBack' as const,
    'endHold' as const,
  ),
  which: fc.nat({ max: 4 }),
});

const comeBack = fc.record({
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

const stepsOfRules = [
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
      }),
      report,
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

const otherLimits = (kind: fc.Arbitrary<Algorithm>) =>
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

/** Any sequence of steps. */
export const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(...stepsOfRules, { weight: 3, arbitrary: otherLimits(algorithm) }),
  { maxLength: 40, size: 'max' },
);

/** With fixed windows by rules that stay, so that what is reported meets all that counts. */
export const stepsWithReports: fc.Arbitrary<Step[]> = fc
  .tuple(
    otherLimits(fc.constant(FIXED_WINDOW)),
    fc.array(fc.oneof(...stepsOfRules, { weight: 3, arbitrary: report }), {
      maxLength: 25,
      size: 'max',
    }),
  )
  .map(([limits, steps]) => [limits, ...steps]);

/** By which some have to wait, and get their turns. */
const limitsWithTurns = fc.record({
  kind: fc.constant('limit' as const),
  key: fc.constantFrom(0, 0, 1),
  limits: fc.record({
    windowMillis: fc.constantFrom(100, 250, 400, 1000),
    maxRequests: fc.constantFrom(1, 1, 2, 3),
    maxRequestsInQueue: fc.constantFrom(2, 3, 4),
    algorithm,
    further: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, further(algorithm)),
  }),
});

const shortAdvance = fc.record({
  kind: fc.constant('advance' as const),
  millis: fc.integer({ min: 1, max: 150 }),
});

/** A check that is likely to get a place and to keep it. */
const keptCheck = fc.record({
  kind: fc.constant('check' as const),
  key: fc.constantFrom(0, 0, 0, 1),
  named: fc.constantFrom(undefined, 0, 1, 2, 0, 1, 2),
  isNew: fc.constant(true),
  terms: fc.record({
    ...terms,
    canWait: fc.constantFrom(true, true, true, true, false),
    noPlace: fc.constant(false),
    maxWaitMillis: fc.option(terms.maxWaitMillis, { freq: 1, nil: undefined }),
    hits: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, fc.constant(2)),
    holdMillis: fc.constantFrom(undefined, undefined, undefined, 150, 450),
    holder: fc.constantFrom(undefined, 'a'),
    maxRequests: fc.constantFrom(undefined, undefined, undefined, undefined, 1, 3),
    maxRequestsInQueue: fc.constantFrom(undefined, undefined, undefined, undefined, 2, 4),
    windowMillis: fc.constant(undefined),
  }),
});

/** What it gets keeps others waiting for longer than a window. */
const blockingCheck = keptCheck.map((step) => ({
  ...step,
  named: undefined,
  terms: { ...step.terms, canWait: false, hits: undefined, holdMillis: 450 },
}));

/** Most of them about places that are kept, and the approvals that follow from these. */
export const stepsWithKeptPlaces: fc.Arbitrary<Step[]> = fc
  .tuple(
    fc.array(limitsWithTurns, { minLength: 1, maxLength: 2 }),
    blockingCheck,
    fc.array(
      fc.oneof(
        { weight: 5, arbitrary: keptCheck },
        { weight: 2, arbitrary: blockingCheck },
        { weight: 4, arbitrary: comeBack },
        { weight: 3, arbitrary: disconnect },
        { weight: 2, arbitrary: end },
        { weight: 4, arbitrary: shortAdvance },
        { weight: 1, arbitrary: fc.constant({ kind: 'handOver' as const }) },
        { weight: 3, arbitrary: fc.oneof(...stepsOfRules) },
      ),
      { maxLength: 40, size: 'max' },
    ),
  )
  .map(([limits, first, steps]) => [...limits, first, ...steps]);
