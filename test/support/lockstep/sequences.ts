import fc from 'fast-check';

import { FIXED_WINDOW } from '../../../src/limiter/limits.js';
import {
  algorithm,
  comeBack,
  disconnect,
  end,
  further,
  otherLimits,
  report,
  stepsOfRules,
  terms,
} from './drawn-steps.js';
import type { Step } from './step.js';

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
