import { DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import fc from '../properties.js';
import {
  algorithm,
  comeBack,
  disconnect,
  end,
  further,
  otherLimits,
  refund,
  report,
  stepsOfRules,
  terms,
} from './drawn-steps.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { FurtherLimit } from '../limits.js';
import type { Step } from './step.js';

/** Any sequence of steps. */
export const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(...stepsOfRules, { weight: 3, arbitrary: otherLimits(algorithm) }),
  { maxLength: 40, size: 'max' },
);

/** With fixed windows by rules that stay, so that what is reported or refunded meets all that counts. */
export const stepsWithReports: fc.Arbitrary<Step[]> = fc
  .tuple(
    otherLimits(fc.constant(DEFAULT_ALGORITHM)),
    fc.array(fc.oneof(...stepsOfRules, { weight: 3, arbitrary: fc.oneof(report, refund) }), {
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

const lane = (name: string, headStartMillis: number): QueueList => ({
  kind: 'lane',
  name,
  headStartMillis,
});
const group = (name: string, weight: number, maxRequests?: number): QueueList => ({
  kind: 'group',
  name,
  weight,
  maxRequests,
});
const LANES = [lane('fast', 200), lane('fast', 200), lane('normal', 50), lane('slow', 0)];
const GROUPS = [group('a', 1), group('a', 1), group('b', 3), group('c', 1, 1), group('', 1)];

const OF_LANES = [['slow'], ['slow', 'normal'], ['fast']];
/** Limits of some lanes among limits of all checks. */
const furtherOfLanes: fc.Arbitrary<FurtherLimit[] | undefined> = fc
  .tuple(further(algorithm), fc.array(fc.constantFrom(undefined, ...OF_LANES), { minLength: 2 }))
  .map(([limits, lanes]) => limits?.map((limit, i) => ({ ...limit, lanes: lanes[i] })));

const limitsWithLists = (ofFurther: fc.Arbitrary<FurtherLimit[] | undefined>) =>
  fc.record({
    kind: fc.constant('limit' as const),
    key: fc.constantFrom(0, 0, 0, 1),
    limits: fc.record({
      windowMillis: fc.constantFrom(100, 250, 400),
      maxRequests: fc.constantFrom(1, 2, 3, 4),
      maxRequestsInQueue: fc.constantFrom(3, 5, 8),
      algorithm,
      further: ofFurther,
    }),
  });

/** Gives the checks and the peeks of steps lists. */
const withLists = (steps: fc.Arbitrary<Step>, lists: fc.Arbitrary<QueueList | undefined>) =>
  fc.tuple(steps, lists).map(([step, list]): Step => {
    if (step.kind === 'peek' || step.kind === 'refund') return { ...step, list };
    return step.kind === 'check' ? { ...step, terms: { ...step.terms, list } } : step;
  });

/** A check that is likely to wait. */
const waitingCheck = keptCheck.map((step) => ({
  ...step,
  terms: { ...step.terms, canWait: true, noPlace: false },
}));

const stepsIn = (
  lists: fc.Arbitrary<QueueList | undefined>,
  ofFurther: fc.Arbitrary<FurtherLimit[] | undefined>,
): fc.Arbitrary<Step[]> =>
  fc
    .tuple(
      limitsWithLists(ofFurther),
      withLists(blockingCheck, lists),
      fc.array(
        fc.oneof(
          { weight: 8, arbitrary: withLists(waitingCheck, lists) },
          { weight: 2, arbitrary: comeBack },
          { weight: 2, arbitrary: disconnect },
          { weight: 2, arbitrary: end },
          { weight: 4, arbitrary: shortAdvance },
          { weight: 1, arbitrary: limitsWithLists(ofFurther) },
          { weight: 5, arbitrary: withLists(fc.oneof(...stepsOfRules), lists) },
        ),
        { maxLength: 40, size: 'max' },
      ),
    )
    .map(([limits, first, steps]) => [limits, first, ...steps]);

/** Checks in lanes, with limits of some of them. */
export const stepsInLanes = stepsIn(fc.constantFrom(...LANES), furtherOfLanes);
/** Checks in groups. */
export const stepsInGroups = stepsIn(fc.constantFrom(...GROUPS), fc.constant(undefined));
const limited = (name: string, weight: number, headStartMillis?: number): QueueList => ({
  ...{ kind: 'group', name, weight, maxRequests: undefined },
  ...{ hasLimits: true, headStartMillis },
});
/** Some of them with a lane inside. No two have their turns at one moment. */
const LIMITED = [
  ...[limited('a', 1), limited('a', 1, 197.5), limited('b', 3), limited('b', 3, 49.5)],
  ...[limited('c', 1), limited('', 1)],
];
const perGroup = fc
  .constantFrom(new Map<string, number>(), new Map([['b', 3]]), new Map([['', 0]]))
  .map((maxima) => ({ maxima }));
/** Limits that each group has to itself, and perhaps one of the key. */
const furtherOfGroups: fc.Arbitrary<FurtherLimit[] | undefined> = fc
  .tuple(
    further(algorithm),
    fc.array(fc.option(perGroup, { freq: 4, nil: undefined }), { minLength: 2 }),
  )
  .map(([limits, perGroups]) => limits?.map((limit, i) => ({ ...limit, perGroup: perGroups[i] })));

/**
 * The same limits with other maxima, or none. A group takes other windows, and the rate of another bucket, when it is looked at next,
 * which the limiters may do at different moments.
 */
const withOtherMaxima = (limits: readonly FurtherLimit[] | undefined) =>
  fc
    .tuple(fc.array(fc.nat({ max: 5 }), { minLength: 2, maxLength: 2 }), perGroup, fc.boolean())
    .map(([maxima, otherPerGroup, areGone]) =>
      areGone
        ? undefined
        : limits?.map((limit, i): FurtherLimit => {
            if (!limit.perGroup || limit.algorithm?.name === 'token_bucket') return limit;
            return { ...limit, maximum: maxima[i] ?? 0, perGroup: otherPerGroup };
          }),
    );

/** Checks in groups with limits of their own. */
export const stepsInLimitedGroups = furtherOfGroups
  .chain((limits) => stepsIn(fc.constantFrom(...LIMITED), withOtherMaxima(limits)))
  .chain((steps) =>
    fc
      .array(fc.constantFrom(undefined, 'a', 'b', ''), {
        minLength: steps.length,
        maxLength: steps.length,
      })
      .map((groups) =>
        steps.map((step, i): Step => {
          const group = groups[i];
          if (step.kind === 'pause') return { ...step, group };
          return step.kind === 'report' ? { ...step, report: { ...step.report, group } } : step;
        }),
      ),
  );

/** As if rules came and went that name lanes and groups. */
export const stepsInAnyLists = stepsIn(
  fc.constantFrom(undefined, undefined, ...LANES, ...GROUPS),
  furtherOfLanes,
);
