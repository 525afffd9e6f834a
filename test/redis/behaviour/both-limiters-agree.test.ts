import { randomUUID } from 'node:crypto';

import fc from 'fast-check';

import type { FurtherLimit } from '../../support/further-limits.js';
import { UnavailableError } from '../../../src/limiter/errors.js';
import type {
  Amendment,
  Decision,
  Holding,
  InstanceDetail,
  Peek,
  PeekRequest,
  RemainingReport,
} from '../../../src/limiter/limiter.js';
import { handleOf } from '../../../src/limiter/holdings.js';
import { type Algorithm, FIXED_WINDOW } from '../../../src/limiter/limits.js';
import { extent } from '../../support/extent.js';
import {
  createMemoryHarness,
  type HarnessFactory,
  type LimiterHarness,
  redisHarnessFactory,
} from '../../support/limiter-harness.js';
import type { DeclaredLimits } from '../../support/limits.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { startCheck, type WatchedCheck } from '../../support/watched-check.js';

const LIMITS: DeclaredLimits = { windowMillis: 100, maxRequests: 2, maxRequestsInQueue: 3 };
const KEYS = 2;
/** Fewer than wait in some sequences. */
const MOST_QUEUED = 3;
const NAMES = 2;
/** A record may be forgotten this long after its last change: three of the shortest windows. */
const REMEMBERED_MILLIS = 90;
/** Lower than some maxima. */
const BOUNDS = { maxIdsPerKey: 3, maxHoldsPerKey: 2 };

type Step =
  | {
      readonly kind: 'check';
      readonly key: number;
      /** Which of the key's ids its caller has chosen. */
      readonly named: number | undefined;
      readonly canWait: boolean;
      readonly noPlace: boolean;
      readonly maxWaitMillis: number | undefined;
      readonly hits: number | undefined;
      readonly holdMillis: number | undefined;
      /** Counts only with a hold. */
      readonly holder: string | undefined;
      readonly maxRequests: number | undefined;
      readonly maxRequestsInQueue: number | undefined;
      readonly windowMillis: number | undefined;
    }
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
  /** `which` counts back from the latest: approvals for a release, waiters for a disconnect. */
  | { readonly kind: 'disconnect'; readonly which: number }
  /** Of an approval, or of a request that waits and whose caller has chosen its id. */
  | { readonly kind: 'release'; readonly which: number }
  | { readonly kind: 'giveBack'; readonly which: number }
  /** Of an approval, which may not be held. */
  | { readonly kind: 'endHold'; readonly which: number }
  | { readonly kind: 'amend'; readonly which: number; readonly amendment: Amendment }
  | { readonly kind: 'pause'; readonly key: number; readonly millis: number }
  | { readonly kind: 'report'; readonly key: number; readonly report: RemainingReport }
  | { readonly kind: 'advance'; readonly millis: number }
  /** A key has other limits from now on. */
  | { readonly kind: 'limit'; readonly key: number; readonly limits: DeclaredLimits };

const algorithm: fc.Arbitrary<Algorithm> = fc.oneof(
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

const hits = fc.constantFrom(undefined, undefined, undefined, 2, 2, 3, 4, 6);
const holdMillis = fc.constantFrom(undefined, undefined, undefined, 30, 100, 150, 450);

const report = fc.record({
  kind: fc.constant('report' as const),
  key: fc.nat({ max: KEYS - 1 }),
  report: fc.record({
    limit: fc.constantFrom(undefined, undefined, undefined, 'a', 'a', 'b'),
    remaining: fc.nat({ max: 4 }),
    resetMillis: fc.constantFrom(undefined, 1, 30, 60, 100, 130, 250, 900),
  }),
});

const stepsOfRules = [
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('check' as const),
      key: fc.nat({ max: KEYS - 1 }),
      named: fc.constantFrom(undefined, undefined, undefined, 0, 0, 1),
      canWait: fc.boolean(),
      noPlace: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
      maxWaitMillis: fc.option(
        fc.oneof(fc.nat({ max: 450 }), fc.constantFrom(99, 100, 101, 200, 300)),
        { nil: undefined },
      ),
      hits,
      holdMillis,
      holder: fc.constantFrom(undefined, 'a', 'a', 'b'),
      maxRequests: fc.option(fc.integer({ min: 1, max: 5 }), { freq: 4, nil: undefined }),
      maxRequestsInQueue: fc.option(fc.nat({ max: 5 }), { freq: 4, nil: undefined }),
      windowMillis: fc.constantFrom(undefined, undefined, undefined, undefined, 30, 100, 250),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('peek' as const),
      key: fc.nat({ max: KEYS - 1 }),
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
      fc.record({ kind: fc.constant('disconnect' as const), which: fc.nat({ max: 4 }) }),
      fc.record({
        kind: fc.constantFrom(
          'release' as const,
          'release' as const,
          'giveBack' as const,
          'endHold' as const,
        ),
        which: fc.nat({ max: 4 }),
      }),
      fc.record({
        kind: fc.constant('pause' as const),
        key: fc.nat({ max: KEYS - 1 }),
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
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      millis: fc.oneof(
        fc.integer({ min: 1, max: 500 }),
        fc.constantFrom(99, 100, 101, 399, 400, 401),
      ),
    }),
  },
];

const otherLimits = (kind: fc.Arbitrary<Algorithm>) =>
  fc.record({
    kind: fc.constant('limit' as const),
    key: fc.nat({ max: KEYS - 1 }),
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

const anyStep: fc.Arbitrary<Step> = fc.oneof(...stepsOfRules, {
  weight: 3,
  arbitrary: otherLimits(algorithm),
});

/** With fixed windows by rules that stay, so that what is reported meets all that counts. */
const stepsWithReports: fc.Arbitrary<Step[]> = fc
  .tuple(
    otherLimits(fc.constant(FIXED_WINDOW)),
    fc.array(fc.oneof(...stepsOfRules, { weight: 3, arbitrary: report }), {
      maxLength: 25,
      size: 'max',
    }),
  )
  .map(([limits, steps]) => [limits, ...steps]);

/** One limiter under a sequence of steps, and its visible state. */
class Subject {
  readonly #keys = Array.from({ length: KEYS }, uniqueKey);
  readonly #limits = Array.from({ length: KEYS }, () => LIMITS);
  readonly #checks: {
    readonly key: string;
    readonly requestId: string | undefined;
    readonly check: WatchedCheck;
  }[] = [];
  /** For each key and each of its ids, the id, and when its record may have changed last. */
  readonly #ids = Array.from({ length: KEYS * NAMES }, () => ({ id: randomUUID(), usedAt: 0 }));
  #now = 0;

  private constructor(private readonly harness: LimiterHarness) {}

  static async create(createHarness: HarnessFactory): Promise<Subject> {
    const limitsOf = (key: string): DeclaredLimits => subject.limitsOf(key);
    const subject: Subject = new Subject(await createHarness(limitsOf, BOUNDS));
    return subject;
  }

  limitsOf(key: string): DeclaredLimits {
    return this.#limits[this.#keys.indexOf(key)]!;
  }

  close(): Promise<void> {
    return this.harness.close();
  }

  async run(step: Step): Promise<unknown> {
    const { limiter } = this.harness;
    if (step.kind === 'advance') {
      this.#noteUses();
      await this.harness.advance(step.millis);
      this.#now += step.millis;
      return undefined;
    }
    if (step.kind === 'limit') {
      this.#limits[step.key] = step.limits;
      await this.settle();
      return undefined;
    }
    if (step.kind === 'pause') {
      await limiter.pause(this.#keys[step.key]!, step.millis);
      await this.harness.quiet();
      return undefined;
    }
    if (step.kind === 'report') {
      const reported = await limiter.reportRemaining(this.#keys[step.key]!, step.report);
      await this.harness.quiet();
      return reported;
    }
    if (step.kind === 'check') {
      const key = this.#keys[step.key]!;
      const holder = step.holdMillis === undefined ? undefined : step.holder;
      const requestId = step.named === undefined ? undefined : this.#idOf(step.key, step.named);
      const check = startCheck(limiter, { ...step, key, requestId, holder });
      this.#checks.push({ key, requestId, check });
      await this.harness.quiet();
      return undefined;
    }
    if (step.kind === 'peek') {
      const { hits, holdMillis, isChecked } = step;
      return this.#peek({ key: this.#keys[step.key]!, hits, holdMillis }, isChecked);
    }
    if (step.kind === 'status') return this.#statusOf(step.which);
    if (step.kind === 'disconnect') {
      const undecided = this.#checks.filter(({ check }) => !check.settled && !check.failure);
      const disconnecting = undecided.at(-1 - step.which);
      disconnecting?.check.disconnect();
      await this.harness.quiet();
      return undefined;
    }
    const approved = this.#checks.flatMap(({ key, requestId, check: { settled, failure } }) => {
      if (settled?.outcome === 'approved') {
        return [{ key, requestId: settled.requestId, claim: settled.claim }];
      }
      const isWaiting = !settled && !failure && requestId !== undefined;
      return isWaiting && step.kind === 'release' ? [{ key, requestId, claim: undefined }] : [];
    });
    const chosen = approved.at(-1 - step.which);
    if (!chosen) return undefined;
    if (step.kind === 'giveBack') {
      limiter.giveBack(chosen.key, chosen.claim ?? chosen.requestId);
      await this.harness.quiet();
      return undefined;
    }
    if (step.kind === 'endHold') {
      const isEnded = await limiter.endHold(chosen.key, handleOf(chosen.key, chosen.requestId));
      await this.harness.quiet();
      return isEnded;
    }
    const isFound =
      step.kind === 'amend'
        ? await limiter.amend(chosen.key, chosen.requestId, step.amendment)
        : await limiter.release(chosen.key, chosen.requestId);
    await this.harness.quiet();
    return isFound;
  }

  /** An id of a key, and another one where the two limiters may have forgotten it at different times. */
  #idOf(key: number, which: number): string {
    const named = this.#ids[key * NAMES + which]!;
    this.#noteUses();
    if (this.#now >= named.usedAt + REMEMBERED_MILLIS) named.id = randomUUID();
    named.usedAt = this.#now;
    return named.id;
  }

  /** The records of requests that wait may change at any moment. */
  #noteUses(): void {
    for (const { requestId, check } of this.#checks) {
      const named = this.#ids.find(({ id }) => id === requestId);
      if (named && !check.settled && !check.failure) named.usedAt = this.#now;
    }
  }

  /** Returns what a peek says that changes nothing. @param isChecked a check gets the same after it */
  async #peek(request: PeekRequest, isChecked: boolean): Promise<unknown> {
    const { limiter } = this.harness;
    const before = await this.states();
    const said = await settled(limiter.peek(request));
    expect(await this.states()).toEqual(before);
    if (!isChecked) return said;
    const got = await settled(limiter.check({ ...request, canWait: false }));
    await this.harness.quiet();
    expect(outcomeOf(said)).toEqual(outcomeOf(got));
    return said;
  }

  /** Returns what a request is by a question that changes nothing. */
  async #statusOf(which: number): Promise<unknown> {
    this.#noteUses();
    const requests = this.#checks.flatMap(({ key, requestId, check: { settled } }) => {
      const named = this.#ids.find(({ id }) => id === requestId);
      if (requestId !== undefined) {
        const isRemembered = named && this.#now < named.usedAt + REMEMBERED_MILLIS;
        return isRemembered ? [{ key, requestId }] : [];
      }
      return settled?.outcome === 'approved' ? [{ key, requestId: settled.requestId }] : [];
    });
    const chosen = requests.at(-1 - which);
    if (!chosen) return undefined;
    const before = await this.states();
    const status = await this.harness.limiter.statusOf(chosen.key, chosen.requestId);
    expect(await this.states()).toEqual(before);
    return status;
  }

  /** Serves the waiters. Limits that wait for the end of a window come into force if it is over. */
  async settle(): Promise<void> {
    this.harness.limiter.limitsChanged();
    await this.harness.quiet();
  }

  /** The outcome of each check so far, without request ids, which differ between limiters. */
  decisions(): unknown[] {
    return this.#checks.map(({ check: { settled, failure } }) => {
      if (failure) return failure.message;
      if (!settled) return 'waiting';
      return { ...settled, requestId: undefined, claim: undefined };
    });
  }

  /** What can be seen of each key, in short and in detail. */
  async states(): Promise<unknown[]> {
    const { limiter } = this.harness;
    const states = this.#keys.map(async (key) => {
      const state = await limiter.inspect(key);
      const detail = await limiter.examine(key, MOST_QUEUED);
      return [
        state && { ...state, key: undefined },
        detail && withoutNames(detail),
        comparable(await limiter.holdings(key)),
      ];
    });
    return Promise.all(states);
  }
}

/** What a promise resolves to, or the error that it rejects with. */
async function settled<Value>(promise: Promise<Value>): Promise<Value | Error> {
  try {
    return await promise;
  } catch (error) {
    return error as Error;
  }
}

/** What a peek and a check have in common. A check that takes nothing leaves the quota as a peek sees it. */
function outcomeOf(result: Peek | Decision | Error): unknown {
  if (result instanceof UnavailableError) return result.reason;
  if (result instanceof Error) throw result;
  return result.outcome === 'denied'
    ? { reason: result.reason, quota: result.quota }
    : result.outcome;
}

/** Leaves out the handles, which differ as the request ids do, and the order that follows from them. */
function comparable(holdings: readonly Holding[]): string[] {
  return holdings.map((holding) => JSON.stringify({ ...holding, handle: undefined })).sort();
}

/** Leaves out what only one of the limiters has: the names of the key, of replicas and in the store, and leases. */
function withoutNames(detail: InstanceDetail): unknown {
  return {
    ...detail,
    key: undefined,
    names: undefined,
    queue: detail.queue.map(({ waitedMillis }) => waitedMillis),
    replicas: detail.replicas.map(({ places }) => places),
  };
}

describe('the embedded and the Redis limiter', () => {
  const redis = useRedis();
  const createRedisHarness = redisHarnessFactory(redis);

  async function expectSameOf(steps: readonly Step[]): Promise<void> {
    const memory = await Subject.create(createMemoryHarness);
    const inRedis = await Subject.create(createRedisHarness);
    try {
      for (const step of steps) {
        expect(await inRedis.run(step)).toEqual(await memory.run(step));
        expect(inRedis.decisions()).toEqual(memory.decisions());
        // A timer may be early, as after a pause. Such a settle grants nothing, but limits may come into force with it.
        await Promise.all([memory.settle(), inRedis.settle()]);
        expect(inRedis.decisions()).toEqual(memory.decisions());
        expect(await inRedis.states()).toEqual(await memory.states());
      }
    } finally {
      await Promise.all([memory.close(), inRedis.close()]);
    }
  }

  test('agree on every decision and every state after any sequence of steps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 40, size: 'max' }), expectSameOf),
      {
        numRuns: extent(100, 250),
      },
    );
  }, 300_000);

  test('agree on reports to fixed windows, between any other steps', async () => {
    await fc.assert(fc.asyncProperty(stepsWithReports, expectSameOf), {
      numRuns: extent(50, 150),
    });
  }, 300_000);
});
