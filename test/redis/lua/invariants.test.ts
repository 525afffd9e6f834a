import fc from 'fast-check';

import type { FurtherLimit } from '../../support/further-limits.js';
import type { DeclaredLimits } from '../../support/limits.js';
import { beforeOrder, orderOfFew } from '../../support/before-order.js';
import {
  type ReplicaOptions,
  ScriptHarness,
  type TestReplica,
} from '../../support/script-harness.js';
import { sentAgain, unguarded } from '../../support/unguarded.js';
import { extent } from '../../support/extent.js';
import { readStoredState, type StoredLimit } from '../../support/stored-state.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const hits = fc.integer({ min: 1, max: 5 });
/** Some lapse within a window, some after several. */
const holdMillis = fc.constantFrom(100, 600, 1000, 2500, 9000);
const replicaId = fc.constantFrom('r1', 'r2', 'r3');
/** The field `more` while the order follows the holds. */
const FOLLOWED = '2';
/** Two keep the order of two holds. The third has a version that knows of none. */
const ORDERS: Readonly<Record<string, Pick<ReplicaOptions, 'replacements'>>> = {
  r1: { replacements: orderOfFew() },
  r2: { replacements: orderOfFew() },
  r3: { replacements: beforeOrder() },
};

const furtherLimit = (name: string): fc.Arbitrary<FurtherLimit> =>
  fc.record({
    name: fc.constant(name),
    windowMillis: fc.constantFrom(250, 3000, 10_000, 30_000),
    maximum: fc.constantFrom(1, 2, 4, 8),
    counts: fc.constantFrom('hits', 'requests'),
    keepsReleased: fc.boolean(),
  });

/** Rules of a key, of which calls have one or another. */
const furtherRules = fc.array(
  fc.oneof(
    fc.constant([]),
    fc.tuple(furtherLimit('a')),
    fc.tuple(furtherLimit('a'), furtherLimit('b')),
    fc.tuple(furtherLimit('b'), furtherLimit('c')),
  ),
  { minLength: 1, maxLength: 3 },
);

/** One call of a script by a replica, `millis` after the one before; the clock can go back. */
const callAbout = (requestId: fc.Arbitrary<string>) =>
  fc.record({
    millis: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 400 }) },
      { weight: 2, arbitrary: fc.integer({ min: 900, max: 6000 }) },
      { weight: 1, arbitrary: fc.integer({ min: -3000, max: 0 }) },
    ),
    replicaId,
    windowMillis: fc.constantFrom(1000, 1000, 1000, 250),
    /** Those of the replica's rules. */
    limits: fc.constant<Partial<DeclaredLimits>>({}),
    step: fc.oneof(
      fc.record({
        script: fc.constant('check' as const),
        checks: fc.array(fc.record({ requestId, canWait: fc.boolean() }), {
          minLength: 1,
          maxLength: 6,
        }),
        overrides: fc.record(
          {
            maxRequests: fc.integer({ min: 1, max: 4 }),
            maxRequestsInQueue: fc.integer({ min: 0, max: 4 }),
          },
          { requiredKeys: [] },
        ),
      }),
      fc.record({
        script: fc.constant('check with hits' as const),
        requestId,
        hits,
        canWait: fc.boolean(),
      }),
      fc.record({
        script: fc.constant('check with a hold' as const),
        requestId,
        hits,
        holdMillis,
        canWait: fc.boolean(),
      }),
      fc.record({
        script: fc.constant('renew a hold' as const),
        requestId,
        amendment: fc.record({ hits: fc.nat({ max: 5 }), holdMillis }, { requiredKeys: [] }),
      }),
      fc.record({ script: fc.constant('release' as const), requestId }),
      fc.record({ script: fc.constant('amend' as const), requestId, hits: fc.nat({ max: 5 }) }),
      fc.record({
        script: fc.constant('withdraw' as const),
        requestIds: fc.array(requestId, { minLength: 1, maxLength: 5 }),
      }),
      fc.record({
        script: fc.constant('settle' as const),
        tickets: fc.dictionary(requestId, fc.integer({ min: 1, max: 9_000_000 }), { maxKeys: 4 }),
        holdMillis: fc.option(holdMillis, { nil: undefined }),
      }),
      fc.record({ script: fc.constant('inspect' as const) }),
    ),
  });

/** One of `count` ids. */
const requestIdOf = (count: number): fc.Arbitrary<string> =>
  fc.integer({ min: 1, max: count }).map((number) => `id${number}`);

const call = callAbout(requestIdOf(15));

type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

/** A hold, an approval and a waiter. Random calls may have none of them, and then a property says nothing. */
const holdAndQueue = (limits: Partial<DeclaredLimits>): Call[] => {
  const about = { millis: 0, replicaId: 'r1', windowMillis: 1000, limits } as const;
  const [held, approved, waiting] = ['id1', 'id2', 'id3'] as const;
  return [
    {
      ...about,
      step: {
        script: 'check with a hold',
        requestId: held,
        hits: 1,
        holdMillis: 2500,
        canWait: false,
      },
    },
    {
      ...about,
      step: {
        script: 'check',
        checks: [
          { requestId: approved, canWait: false },
          { requestId: waiting, canWait: true },
        ],
        overrides: {},
      },
    },
  ];
};

/**
 * Runs the calls on their own key, and `verify` after each. A request id belongs to the replica that made it. A
 * check of an id that was checked or asked about before is marked as sent again.
 */
async function run(
  calls: readonly Call[],
  verify: (key: ScriptHarness, script: string, now: number) => Promise<void>,
): Promise<void> {
  const key = await ScriptHarness.create(redis.client);
  const checked = new Set<string>();
  let now = 0;
  for (const { millis, windowMillis, limits, step, replicaId } of calls) {
    now += millis;
    await key.setTime(now);
    const own = (id: string): string => `${replicaId}-${id}`;
    const options = {
      limits: { windowMillis, ...limits },
      leaseMillis: 2000,
      ...ORDERS[replicaId],
    };
    const replica = key.replica(replicaId, options);
    const checking = (ids: readonly string[]): TestReplica => {
      const isSentAgain = ids.some((id) => checked.has(id));
      for (const id of ids) checked.add(id);
      return key.replica(replicaId, { ...options, guard: isSentAgain ? sentAgain : unguarded });
    };
    switch (step.script) {
      case 'check': {
        const checks = step.checks.map((check) => ({ ...check, requestId: own(check.requestId) }));
        const once = checks.filter(
          ({ requestId }, i) => checks.findIndex((other) => other.requestId === requestId) === i,
        );
        const ids = once.map(({ requestId }) => requestId);
        await checking(ids).checkBatch(once, step.overrides);
        break;
      }
      case 'check with hits': {
        const id = own(step.requestId);
        await checking([id]).checkHits(id, step.hits, { canWait: step.canWait });
        break;
      }
      case 'check with a hold': {
        const id = own(step.requestId);
        const { hits, canWait } = step;
        await checking([id]).checkHold(id, step.holdMillis, { hits, canWait });
        break;
      }
      case 'renew a hold':
        await replica.renewHold(own(step.requestId), step.amendment);
        break;
      case 'release':
        await replica.release(own(step.requestId));
        break;
      case 'amend':
        await replica.amend(own(step.requestId), step.hits);
        break;
      case 'withdraw':
        await replica.withdraw(step.requestIds.map(own));
        break;
      case 'settle': {
        // Lowest ticket first, as replicas ask, and no ticket twice.
        const tickets = Object.entries(step.tickets).map(
          ([id, ticket]) => [own(id), ticket] as const,
        );
        const terms = Object.fromEntries(
          tickets.map(
            ([id]) =>
              [id, step.holdMillis === undefined ? {} : { holdMillis: step.holdMillis }] as const,
          ),
        );
        const byTicket = tickets.sort(([, a], [, b]) => a - b);
        await replica.settle(Object.fromEntries(byTicket), 0, '', terms);
        // The settle puts these ids back, so a check of one counts as sent again.
        for (const [id] of tickets) checked.add(id);
        break;
      }
      case 'inspect':
        await replica.inspect();
        break;
    }
    await verify(key, step.script, now);
  }
}

/** By id, the hits of each hold that is stored, and when it lapses, in ms after the start. */
async function storedHolds(key: ScriptHarness): Promise<Map<string, [number, number]>> {
  const holds = Object.entries(await redis.client.hgetall(key.names.holds));
  return new Map(
    holds.map(([id, hold]) => {
      const [, lapses, hits] = /^(\d+):\d+(?:\*(\d+))?$/.exec(hold)!;
      return [id, [Number(hits ?? 1), Number(lapses) - key.startMillis]];
    }),
  );
}

const calls = fc.array(call, { minLength: 1, maxLength: 25 });
/** The same calls by replicas with the same length of windows. */
const callsOfOneWindow = calls.map((sequence) =>
  sequence.map((each) => ({ ...each, windowMillis: sequence[0]!.windowMillis })),
);

describe('after any calls of the scripts, in any order', () => {
  // The harness itself fails if a key that exists has no expiry.
  test.each([
    ['the expiry of the state', callsOfOneWindow, (expiry: number) => expiry],
    // Only the turn of a state that outlives its instance is needed.
    ['the expiry of an instance, with any windows', calls, Math.min],
  ])('every key has an expiry, and none comes before %s', async (_what, sequences, earliest) => {
    let keysSeen = 0;
    await fc.assert(
      fc.asyncProperty(sequences, (sequence) =>
        run(sequence, async (key) => {
          const { state, expiry } = await key.stored();
          keysSeen += Object.keys(expiry).length;
          if (expiry.state === undefined) {
            expect(expiry).toEqual({});
            return;
          }
          const from = earliest(expiry.state, Number(state!.expires));
          const { holdsByLapse, ...others } = expiry;
          for (const at of Object.values(others)) expect(at).toBeGreaterThanOrEqual(from);
          // A version that knows of no order leaves its expiry behind, and says so.
          if ((await redis.client.hget(key.names.state, 'more')) !== FOLLOWED) return;
          // It also says that the order is followed while nothing is held.
          if (expiry.holds === undefined) expect(holdsByLapse).toBeUndefined();
          else expect(holdsByLapse).toBeGreaterThanOrEqual(from);
        }),
      ),
      { numRuns: extent(12, 40), examples: [[holdAndQueue({})]] },
    );
    expect(keysSeen).toBeGreaterThan(0);
  });

  // A key that settle restores after its loss begins with a full window of unknown ids.
  const withoutLoss = calls.map((sequence) =>
    sequence.map((each): Call =>
      each.step.script === 'settle' ? { ...each, step: { ...each.step, tickets: {} } } : each,
    ),
  );

  test('the count of approvals is the sum of the hits of approved and held ids', async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(withoutLoss, (sequence) =>
        run(sequence, async (key, script, now) => {
          const { state, requests } = await key.stored();
          const holds = await storedHolds(key);
          seen += holds.size;
          const held = [...holds.values()].reduce((sum, [hits]) => sum + hits, 0);
          expect([script, state?.held ?? 0]).toEqual([script, held]);
          if (state && holds.size === 0 && now >= Number(state.expires)) return; // It counts as removed.
          const hits = await redis.client.hgetall(key.names.hits);
          expect(Object.keys(hits).filter((id) => !requests.includes(id))).toEqual([]);
          expect(state?.approved ?? 0).toBe(
            requests.reduce((sum, id) => sum + Number(hits[id] ?? 1), held),
          );
        }),
      ),
      { numRuns: extent(15, 60), examples: [[holdAndQueue({})]] },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('no hold that has lapsed is left, and the state knows when the others may lapse', async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(calls, (sequence) =>
        run(sequence, async (key, script, now) => {
          if (script === 'inspect') return;
          const { state, expiry } = await key.stored();
          const lapses = [...(await storedHolds(key)).values()].map(([, at]) => at);
          seen += lapses.length;
          expect(lapses.filter((at) => at <= now)).toEqual([]);
          if (lapses.length === 0) {
            expect(state?.lapses).toBeUndefined();
            return;
          }
          const [first, last] = state!.lapses as [number, number];
          expect(first).toBeGreaterThan(now);
          expect(first).toBeLessThanOrEqual(Math.min(...lapses));
          expect(last).toBeGreaterThanOrEqual(Math.max(...lapses));
          expect(expiry.holds).toBeGreaterThanOrEqual(Math.max(...lapses));
        }),
      ),
      { numRuns: extent(15, 60), examples: [[holdAndQueue({})]] },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('a held id is in no set, and does not wait', async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(withoutLoss, (sequence) =>
        run(sequence, async (key) => {
          const { requests, pastRequests, queue } = await key.stored();
          const elsewhere = [
            ...requests,
            ...pastRequests,
            ...queue.map(([waiter]) => waiter.split('@')[0]!),
          ];
          for (const id of (await storedHolds(key)).keys()) {
            seen += 1;
            expect(elsewhere).not.toContain(id);
          }
        }),
      ),
      { numRuns: extent(15, 60), examples: [[holdAndQueue({})]] },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('the queue has waiters only while the window has no room for the head', async () => {
    let queuesSeen = 0;
    await fc.assert(
      fc.asyncProperty(calls, (sequence) =>
        run(sequence, async (key, script) => {
          if (script === 'inspect') return;
          const { state, queue } = await key.stored();
          if (queue.length === 0) return;
          queuesSeen += 1;
          // A lost key is in its recovery hold until all waiters are back.
          if (state!.holdUntil !== 'no') return;
          if (state!.isServing) return;
          expect(state!.approved).toBeGreaterThanOrEqual(Number(state!.max));
        }),
      ),
      { numRuns: extent(15, 60), examples: [[holdAndQueue({})]] },
    );
    expect(queuesSeen).toBeGreaterThan(0);
  });

  test('no check both waits on a replica and is approved', async () => {
    await fc.assert(
      fc.asyncProperty(calls, (sequence) =>
        run(sequence, async (key) => {
          const { requests, queue } = await key.stored();
          const waiting = queue.map(([waiter]) => waiter.split('@')[0]!);
          expect(requests.filter((id) => waiting.includes(id))).toEqual([]);
        }),
      ),
      { numRuns: extent(15, 60), examples: [[holdAndQueue({})]] },
    );
  });
});

/** Calls about few ids by replicas whose rules have further limits, which change from call to call. */
const callsWithLimits = fc
  .tuple(
    fc.array(callAbout(requestIdOf(3)), { minLength: 10, maxLength: 25 }),
    furtherRules,
    fc.array(fc.nat({ max: 20 }), { minLength: 25, maxLength: 25 }),
  )
  .map(([sequence, rules, choices]) =>
    sequence.map((each, i): Call => {
      // Most calls have the first rules.
      const further = rules[Math.max(0, choices[i]! - 18)] ?? rules[0]!;
      const step = each.step.script === 'settle' ? { ...each.step, tickets: {} } : each.step;
      const replicaId = each.replicaId === 'r3' ? 'r1' : each.replicaId;
      return { ...each, replicaId, limits: { maxRequests: 8, further }, step };
    }),
  );

const HOLD_AND_QUEUE_WITH_LIMITS = holdAndQueue({
  maxRequests: 8,
  further: [
    { name: 'a', windowMillis: 30_000, maximum: 2, counts: 'requests', keepsReleased: false },
  ],
});

interface LimitNow extends StoredLimit {
  /** By id, what each approval takes that is not counted as held. */
  readonly ids: ReadonlyMap<string, number>;
}

/** What is stored of the further limits of a key; nothing if the key counts as removed. */
async function storedLimits(key: ScriptHarness, now: number): Promise<LimitNow[]> {
  const state = readStoredState(await redis.client.hgetall(key.names.state));
  if (!state || (state.expires - key.startMillis <= now && !state.holds)) return [];
  return Promise.all(
    state.further.map(async (limit) => {
      const ids = Object.entries(await redis.client.hgetall(key.names.limit(limit.name)));
      return { ...limit, ids: new Map(ids.map(([id, taken]) => [id, Number(taken)])) };
    }),
  );
}

describe('after any calls of the scripts of a key with further limits', () => {
  test('each limit counts what its approvals take, and what is held', async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(callsWithLimits, (sequence) =>
        run(sequence, async (key, script, now) => {
          const holds = [...(await storedHolds(key)).values()];
          for (const { name, counts, keepsReleased, taken, ids } of await storedLimits(key, now)) {
            seen += ids.size;
            const ofHolds = holds.map(([hits]) => (counts === 'hits' ? hits : 1));
            const sum = [...ids.values(), ...(keepsReleased ? [] : ofHolds)].reduce(
              (all, each) => all + each,
              0,
            );
            expect([script, name, taken]).toEqual([script, name, sum]);
          }
        }),
      ),
      { numRuns: extent(10, 20), examples: [[HOLD_AND_QUEUE_WITH_LIMITS]] },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('an id that is approved takes from all limits, and another from none', async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(callsWithLimits, async (sequence) => {
        let approvedBefore = new Set<string>();
        let limitsBefore: readonly LimitNow[] = [];
        await run(sequence, async (key, _script, now) => {
          const held = await storedHolds(key);
          const { requests } = await key.stored();
          const limits = await storedLimits(key, now);
          const approved = [...requests, ...held.keys()].filter((id) => !approvedBefore.has(id));
          const hadBefore = (id: string, name: string): boolean =>
            limitsBefore.some((limit) => limit.name === name && limit.ids.has(id));
          for (const { name, keepsReleased, maximum, taken, ids } of limits) {
            for (const id of approved) {
              seen += 1;
              if (hadBefore(id, name)) continue;
              expect([id, name, ids.has(id)]).toEqual([id, name, keepsReleased || !held.has(id)]);
            }
            const others = [...ids.keys()].filter((id) => !requests.includes(id) && !held.has(id));
            expect(others.filter((id) => !hadBefore(id, name))).toEqual([]);
            // A waiter that needs more than the maximum, which was lowered since, gets a window for itself.
            if (approved.length > 1) expect(taken).toBeLessThanOrEqual(maximum);
          }
          approvedBefore = new Set([...requests, ...held.keys()]);
          // Also those of a key that counts as removed, until the clock goes back.
          limitsBefore = await storedLimits(key, -Infinity);
        });
      }),
      { numRuns: extent(10, 20), examples: [[HOLD_AND_QUEUE_WITH_LIMITS]] },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('the ids of a limit expire, and not before its window ends', async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(callsWithLimits, (sequence) =>
        run(sequence, async (key, _script, now) => {
          const expiry = await key.expiry();
          for (const { name, start, windowMillis, ids } of await storedLimits(key, now)) {
            if (ids.size === 0) continue;
            seen += 1;
            const windowEnd = start + windowMillis - key.startMillis;
            expect(expiry[`limit:${name}`]).toBeGreaterThanOrEqual(windowEnd);
          }
        }),
      ),
      { numRuns: extent(8, 15), examples: [[HOLD_AND_QUEUE_WITH_LIMITS]] },
    );
    expect(seen).toBeGreaterThan(0);
  });

  test('somebody waits only while a limit has no room for the head', async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(callsWithLimits, (sequence) =>
        run(sequence, async (key, script) => {
          if (script === 'inspect') return;
          const stored = readStoredState(await redis.client.hgetall(key.names.state));
          const { queue } = await key.stored();
          if (!stored || queue.length === 0 || stored.holdUntil > 0 || stored.isServing) return;
          seen += 1;
          const isFull = stored.further.some(({ taken, maximum }) => taken >= maximum);
          expect(isFull || stored.approved >= stored.max).toBe(true);
        }),
      ),
      { numRuns: extent(8, 15), examples: [[HOLD_AND_QUEUE_WITH_LIMITS]] },
    );
    expect(seen).toBeGreaterThan(0);
  });
});

describe('a key that Redis has evicted alone', () => {
  test.each(['requests', 'queue', 'waiting', 'replicas'] as const)(
    'is given an expiry when it is made again: %s',
    async (evicted) => {
      const key = await ScriptHarness.create(redis.client);
      const replica = key.replica('r1', { limits: { maxRequests: 3 } });
      await replica.check(['a', 'b']);
      await replica.checkOrWait(['c', 'd']);
      await redis.client.del(key.names[evicted]);
      await replica.release('a');
      await replica.checkOrWait(['e', 'f']);
      expect(await key.expiry()).toHaveProperty('state');
    },
  );

  test('is given an expiry when the next approval makes it again', async () => {
    const key = await ScriptHarness.create(redis.client);
    const replica = key.replica('r1');
    await replica.check(['a']);
    await redis.client.del(key.names.requests);
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await key.expiry()).toEqual({ state: 11_000, requests: 11_000 });
  });
});
