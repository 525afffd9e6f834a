import type { Algorithm } from '../../../../src/limiter/kinds/kinds.js';
import { Instance } from '../../../../src/limiter/memory/instance.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';
import { extent } from '../../../support/extent.js';
import { keyLimits } from '../../../support/limits.js';
import fc from '../../../support/properties.js';
import { startOfControlledTime } from '../../../support/redis-time.js';

const BOUNDS = { maxIdsPerKey: Infinity, maxHoldsPerKey: Infinity, maxGroupsPerKey: Infinity };

/** What a bucket may give at once beyond its burst where waiters are served, in milliseconds of its rate. */
const CREDIT_MILLIS = 30;
/** What a sum of doubles may lack. */
const EPSILON = 1e-6;

interface Rules {
  readonly algorithm: Algorithm;
  readonly windowMillis: number;
  readonly maximum: number;
}

interface Approval {
  readonly id: string;
  readonly at: number;
  /** Less after a correction, and 0 after a release. */
  hits: number;
  /** What was given back, in the order of time. */
  readonly givenBack: { readonly at: number; readonly hits: number }[];
}

type Step =
  | {
      readonly kind: 'check';
      readonly hits: number;
      readonly canWait: boolean;
      readonly maxRequests?: number | undefined;
    }
  /** `which` counts back from the latest approval, or waiter. */
  | { readonly kind: 'release' | 'correct' | 'leave'; readonly which: number }
  | { readonly kind: 'pause'; readonly millis: number }
  /** `late`: how late timers are. */
  | { readonly kind: 'advance'; readonly millis: number; readonly late: number };

/** A key of the embedded limiter under a sequence of steps, whose timers may be late. */
class Subject {
  now = 0;
  readonly approvals: Approval[] = [];
  hasServedWaiters = false;
  readonly #waiting = new Map<string, number>();
  readonly #instance: Instance;
  #checks = 0;

  constructor(
    rules: Rules,
    private readonly onDenial: (hits: number) => void = () => undefined,
  ) {
    const { windowMillis, maximum: maxRequests, algorithm } = rules;
    const current = keyLimits({ windowMillis, maxRequests, maxRequestsInQueue: 50, algorithm });
    const budget = new MemoryBudget(Infinity);
    this.#instance = new Instance('k', 0, { current }, BOUNDS, budget, (ids) => {
      for (const id of ids) {
        this.#approve(id, this.#waiting.get(id)!);
        this.#waiting.delete(id);
        this.hasServedWaiters = true;
      }
    });
  }

  run(step: Step): void {
    switch (step.kind) {
      case 'check': {
        this.#check(step);
        return;
      }
      case 'release': {
        const approval = this.approvals.at(-1 - step.which);
        if (approval)
          this.#giveBack(approval, approval.hits, () =>
            this.#instance.release(this.now, approval.id),
          );
        return;
      }
      case 'correct': {
        const approval = this.approvals.at(-1 - step.which);
        if (!approval || approval.hits < 2) return;
        const hits = approval.hits - 1;
        this.#giveBack(
          approval,
          1,
          () => typeof this.#instance.amend(this.now, approval.id, { hits }) === 'object',
        );
        return;
      }
      case 'leave': {
        const id = [...this.#waiting.keys()].at(-1 - step.which);
        if (id === undefined) return;
        this.#waiting.delete(id);
        this.#instance.withdraw(this.now, id);
        return;
      }
      case 'pause': {
        this.#instance.pause(this.now, step.millis);
        return;
      }
      case 'advance': {
        this.#advance(step.millis, step.late);
      }
    }
  }

  #check({ kind: _, ...check }: Step & { readonly kind: 'check' }): void {
    this.#checks += 1;
    const id = String(this.#checks);
    const { hits } = check;
    const decision = this.#instance.check(this.now, id, { key: 'k', ...check });
    if (decision === 'approved') this.#approve(id, hits);
    if (decision === 'waiting') this.#waiting.set(id, hits);
    if (decision === 'denied' && this.#waiting.size === 0) this.onDenial(hits);
  }

  #approve(id: string, hits: number): void {
    this.approvals.push({ id, at: this.now, hits, givenBack: [] });
  }

  #giveBack(approval: Approval, hits: number, giveBack: () => boolean): void {
    // The room may be taken by a waiter at once.
    approval.hits -= hits;
    approval.givenBack.push({ at: this.now, hits });
    if (giveBack()) return;
    approval.hits += hits;
    approval.givenBack.pop();
  }

  #advance(millis: number, late: number): void {
    const until = this.now + millis;
    while (this.#waiting.size > 0) {
      const at = Math.max(this.now, Math.ceil(this.#instance.turns.exactRoomAt) + late);
      if (at > until) break;
      this.now = at;
      this.#instance.settle(this.now);
    }
    this.now = until;
  }
}

const hits = fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 6 }));
const which = fc.nat({ max: 5 });

/** Any steps, of which some wait. */
const steps = (canWait: fc.Arbitrary<boolean>): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ kind: fc.constant('check' as const), hits, canWait }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constantFrom('release' as const, 'correct' as const, 'leave' as const),
          which,
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('advance' as const),
          millis: fc.oneof(fc.nat({ max: 60 }), fc.nat({ max: 1500 })),
          late: fc.constantFrom(0, 0, 1, 10, 300),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('pause' as const),
          millis: fc.constantFrom(0, 40, 500),
        }),
      },
    ),
    { maxLength: 150, size: 'max' },
  );

const windowMillis = fc.constantFrom(1, 7, 100, 333, 1000);
const maximum = fc.integer({ min: 1, max: 8 });

const slidingRules = fc.record({
  algorithm: fc.record({
    name: fc.constant('sliding_window' as const),
    steps: fc.integer({ min: 2, max: 60 }),
  }),
  windowMillis,
  maximum,
});

const bucketRules = (burst: fc.Arbitrary<number>): fc.Arbitrary<Rules> =>
  fc.record({ burst, windowMillis, maximum }).map(({ burst, ...others }) => ({
    ...others,
    algorithm: { name: 'token_bucket', burst: Math.min(burst, others.maximum) },
  }));

const numRuns = extent(150, 5000);

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0);
}

describe('a sliding window', () => {
  test('has at most the maximum in every span of its length, without what was given back by then', () => {
    fc.assert(
      fc.property(slidingRules, steps(fc.boolean()), (rules, sequence) => {
        const subject = new Subject(rules);
        let seen = 0;
        for (const step of sequence) {
          subject.run(step);
          // A span with more would end with an approval.
          for (; seen < subject.approvals.length; seen += 1) {
            const { at } = subject.approvals[seen]!;
            const inSpan = subject.approvals
              .slice(0, seen + 1)
              .filter((approval) => approval.at >= at - rules.windowMillis);
            expect(sum(inSpan.map((approval) => approval.hits))).toBeLessThanOrEqual(rules.maximum);
          }
        }
      }),
      { numRuns },
    );
  });

  test('denies only what the last window and two steps have no room for', () => {
    let denials = 0;
    fc.assert(
      fc.property(slidingRules, steps(fc.constant(false)), (rules, sequence) => {
        const step = Math.max(1, Math.ceil(rules.windowMillis / rules.algorithm.steps));
        const subject = new Subject(rules, (denied) => {
          denials += 1;
          const inSpan = subject.approvals.filter(
            ({ at }) => at > subject.now - (rules.windowMillis + 2 * step),
          );
          expect(denied + sum(inSpan.map(({ hits }) => hits))).toBeGreaterThan(rules.maximum);
        });
        for (const each of sequence) if (each.kind !== 'pause') subject.run(each);
      }),
      { numRuns },
    );
    expect(denials).toBeGreaterThan(numRuns);
  });
});

/** What an approval took by a time, without what a bucket gave back of it: what had not drained. */
function takenBy(time: number, { at, hits, givenBack }: Approval, rate: number): number {
  const before = givenBack.filter((each) => each.at <= time);
  const later = sum(givenBack.filter((each) => each.at > time).map((each) => each.hits));
  const drained = before.map((each) => Math.min(each.hits, rate * (each.at - at)));
  return hits + later + sum(drained);
}

/** Asserts that no span has more than a bucket may give. */
function expectSpans({ approvals, hasServedWaiters }: Subject, rules: Rules): void {
  if (rules.algorithm.name !== 'token_bucket') throw new Error('no bucket');
  const rate = rules.maximum / rules.windowMillis;
  const atOnce = rules.algorithm.burst + (hasServedWaiters ? CREDIT_MILLIS * rate : 0);
  let excess = 0;
  for (const [i, last] of approvals.entries()) {
    let taken = 0;
    for (const first of approvals.slice(0, i + 1).reverse()) {
      taken += takenBy(last.at, first, rate);
      excess = Math.max(excess, taken - atOnce - rate * (last.at - first.at));
    }
  }
  expect(excess).toBeLessThanOrEqual(EPSILON);
}

describe('a token bucket', () => {
  const burst = fc.integer({ min: 1, max: 8 });

  test.each([
    ['and nobody waits', fc.constant(false)],
    ['and some wait, with 30 ms of its rate', fc.boolean()],
  ])('gives no span more than its burst and what drains in it: %s', (_who, canWait) => {
    fc.assert(
      fc.property(bucketRules(burst), steps(canWait), (rules, sequence) => {
        const subject = new Subject(rules);
        for (const step of sequence) subject.run(step);
        expectSpans(subject, rules);
      }),
      { numRuns },
    );
  });

  test('gives no span more than the highest maximum allows that requests set', () => {
    const maxima = fc.array(fc.option(fc.nat({ max: 8 }), { nil: undefined }), { minLength: 1 });
    fc.assert(
      fc.property(bucketRules(burst), steps(fc.boolean()), maxima, (rules, sequence, set) => {
        const subject = new Subject(rules);
        // What a release gives back depends on the maximum at that time.
        const kept = sequence.filter(({ kind }) => kind !== 'release' && kind !== 'correct');
        for (const [i, step] of kept.entries()) {
          const maximum = set[i % set.length];
          const maxRequests = maximum && Math.min(maximum, rules.maximum);
          subject.run(step.kind === 'check' ? { ...step, maxRequests } : step);
        }
        expectSpans(subject, rules);
      }),
      { numRuns },
    );
  });
});

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const BILLION = 1_000_000_000;
/** Of fewer approvals a drift would not be seen. */
const LONG_RUN = extent(30_000, 1_000_000);
const START = startOfControlledTime();

function bucket(burst: number): Algorithm {
  return { name: 'token_bucket', burst };
}

/** A key of the embedded limiter. */
function instanceOf(
  algorithm: Algorithm,
  windowMillis: number,
  maxRequests: number,
  onGrant: (ids: readonly string[]) => void = () => undefined,
): Instance {
  const current = keyLimits({ windowMillis, maxRequests, maxRequestsInQueue: BILLION, algorithm });
  return new Instance('k', START, { current }, BOUNDS, new MemoryBudget(Infinity), onGrant);
}

let ids = 0;

function check(instance: Instance, now: number, canWait = false, hits = 1): string {
  ids += 1;
  return instance.check(now, String(ids), { key: 'k', canWait, hits });
}

/** How many waiters a bucket with a burst of 1 serves in this time, while the queue is never empty. */
function servedIn(millis: number, perSecond: number, late: number): number {
  let served = 0;
  const instance = instanceOf(
    bucket(1),
    SECOND,
    perSecond,
    (granted) => (served += granted.length),
  );
  // Of which a settle serves fewer.
  const waiting = Math.max(10, perSecond / 10);
  for (
    let now = START;
    now <= START + millis + late;
    now = Math.ceil(instance.turns.exactRoomAt) + late
  ) {
    instance.settle(now);
    while (instance.waiting < waiting) check(instance, now, true);
  }
  return served;
}

describe('the rate at which waiters are served', () => {
  test.each([
    [1, MINUTE],
    [50, MINUTE],
    [100, MINUTE],
    [1000, extent(10 * SECOND, MINUTE)],
  ])('follows the rule: %i per second over %i ms', (perSecond, millis) => {
    for (const late of [0, 1, 10]) {
      const served = servedIn(millis, perSecond, late);
      const isExact = Math.abs(served / ((millis / SECOND) * perSecond) - 1) < 0.01;
      expect({ late, isExact }).toEqual({ late, isExact: true });
    }
  });

  test('does not drift in many approvals', () => {
    // Doubles have neither its pace nor the reciprocal of that.
    const millis = (LONG_RUN / 350) * SECOND;
    const served = servedIn(millis, 350, 0);
    expect(Math.abs(served - LONG_RUN)).toBeLessThanOrEqual(1 + 0.03 * 350);
  });
});
