import { jest } from '@jest/globals';

import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { FurtherLimit } from '../../support/further-limits.js';
import type { DeclaredLimits } from '../../support/limits.js';
import fc from '../../support/properties.js';
import {
  TEST_LEASE_MILLIS,
  useScriptHarness,
  type TestReplica,
} from '../../support/script-harness.js';
import { sentAgain, unguarded } from '../../support/unguarded.js';
import { extent } from '../../support/extent.js';
import { readStoredState } from '../../support/stored-state.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

const hits = fc.integer({ min: 1, max: 5 });
/** Some lapse within a window, some after several. */
const holdMillis = fc.constantFrom(100, 600, 1000, 2500, 9000);
const replicaId = fc.constantFrom('r1', 'r2', 'r3');
const furtherLimit = (name: string): fc.Arbitrary<FurtherLimit> =>
  fc.record({
    name: fc.constant(name),
    windowMillis: fc.constantFrom(250, 3000, 10_000, 30_000),
    maximum: fc.constantFrom(1, 2, 4, 8),
    counts: fc.constantFrom('hits', 'requests'),
    keepsReleased: fc.boolean(),
  });

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
  verify: (script: string, now: number) => Promise<void>,
): Promise<void> {
  await key.begin();
  const checked = new Set<string>();
  /** The request that has each ticket. */
  const ticketed = new Map<number, string>();
  let now = 0;
  for (const { millis, windowMillis, limits, step, replicaId } of calls) {
    now += millis;
    await key.setTime(now);
    const own = (id: string): string => `${replicaId}-${id}`;
    const options = {
      limits: { windowMillis, ...limits },
      leaseMillis: 2000,
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
        // A replica withdraws what it has asked for, so a check that comes now is on its way for longer.
        for (const id of step.requestIds) checked.add(own(id));
        break;
      case 'settle': {
        // Lowest ticket first, as replicas ask, and no ticket is given out twice.
        const tickets = Object.entries(step.tickets)
          .map(([id, ticket]) => [own(id), ticket] as const)
          .filter(([id, ticket]) => {
            if (!ticketed.has(ticket)) ticketed.set(ticket, id);
            return ticketed.get(ticket) === id;
          })
          .sort(([, a], [, b]) => a - b);
        const { holdMillis } = step;
        const terms = holdMillis === undefined ? {} : { holdMillis };
        const termsOfAll = Object.fromEntries(tickets.map(([id]) => [id, terms]));
        await replica.settle(Object.fromEntries(tickets), 0, '', termsOfAll);
        // The settle puts these ids back, so a check of one counts as sent again.
        for (const [id] of tickets) checked.add(id);
        break;
      }
      case 'inspect':
        await replica.inspect();
        break;
    }
    await verify(step.script, now);
  }
}

/** The runs bound a test, and not the time. A busy machine takes ten times as long. */
jest.setTimeout(600_000);
/** What fails is shown before the time limit of the test, however far it is shrunk by then. */
const SHOWN_IN_TIME = { interruptAfterTimeLimit: 500_000, markInterruptAsFailure: true };

/** Verifies what is stored after each of any calls. `verify` returns how much it has seen, so that it proves something. */
async function afterAny(
  sequences: fc.Arbitrary<Call[]>,
  examples: readonly Call[][],
  runs: number,
  verify: (script: string, now: number) => Promise<number>,
): Promise<void> {
  let seen = 0;
  await fc.assert(
    fc.asyncProperty(sequences, (sequence) =>
      run(sequence, async (...call) => {
        seen += await verify(...call);
      }),
    ),
    { numRuns: runs, examples: examples.map((each) => [each]), ...SHOWN_IN_TIME },
  );
  expect(seen).toBeGreaterThan(0);
}

/** By id, the hits of each hold that is stored, and when it lapses, in ms after the start. */
async function holdsOf(): Promise<Map<string, [number, number]>> {
  const holds = Object.entries(await key.storedHolds());
  return new Map(
    holds.map(([id, hold]) => {
      const [, lapses, hits] = /^(-?\d+):\d+(?:\*(\d+))?$/.exec(hold)!;
      return [id, [Number(hits ?? 1), Number(lapses)]];
    }),
  );
}

/** The state of the first approval is kept for the id of the hold that was released, and its set is not. */
const approvedAfterRelease: Call[] = [
  { script: 'check with a hold', requestId: 'id3', hits: 1, holdMillis: 100, canWait: false },
  { script: 'renew a hold', requestId: 'id1', amendment: {} },
  { script: 'release', requestId: 'id3' },
  { script: 'check with hits', requestId: 'id1', hits: 1, canWait: false },
].map((step, i) => ({
  millis: i === 1 ? 1 : 0,
  replicaId: 'r1',
  windowMillis: 1000,
  limits: {},
  step: step as Call['step'],
}));

const idOf = (waiter: string): string => waiter.split('@')[0]!;

const calls = fc.array(call, { minLength: 1, maxLength: 25 });
/** The same calls by replicas with the same length of windows. */
const callsOfOneWindow = calls.map((sequence) =>
  sequence.map((each) => ({ ...each, windowMillis: sequence[0]!.windowMillis })),
);
// A key that settle restores after its loss begins with a full window of unknown ids.
const withoutLoss = calls.map((sequence) =>
  sequence.map((each): Call =>
    each.step.script === 'settle' ? { ...each, step: { ...each.step, tickets: {} } } : each,
  ),
);

describe('after any calls of the scripts, in any order', () => {
  const example = holdAndQueue({});

  // The harness itself fails if a key that exists has no expiry.
  test.each([
    ['the expiry of the state', callsOfOneWindow, (expiry: number) => expiry],
    // Only the turn of a state that outlives its instance is needed.
    ['the expiry of an instance, with any windows', calls, Math.min],
  ])('every key has an expiry, and none comes before %s', async (_what, sequences, earliest) => {
    await afterAny(
      sequences,
      [example, approvedAfterRelease],
      extent(12, 40),
      async (_script, now) => {
        const { state, pastRequests, expiry } = await key.stored();
        if (expiry.state === undefined) {
          expect(expiry).toEqual({});
          return 0;
        }
        // Ids that were released are remembered for two leases from then on, and the state, of which they need the turn, stays as
        // long.
        const isForTurn = pastRequests.length > 0 && expiry.state <= now + 2 * TEST_LEASE_MILLIS;
        const from = (isForTurn ? Math.min : earliest)(expiry.state, Number(state!.expires));
        for (const at of Object.values(expiry)) expect(at).toBeGreaterThanOrEqual(from);
        return Object.keys(expiry).length;
      },
    );
  });

  test('the count of approvals is the sum of the hits of ids, each approved, held or waiting', async () => {
    await afterAny(withoutLoss, [example], extent(15, 60), async (script, now) => {
      const { state, requests, pastRequests, queue } = await key.stored();
      const holds = await holdsOf();
      const waiting = queue.map(([waiter]) => idOf(waiter));
      const elsewhere = [...requests, ...pastRequests, ...waiting];
      for (const id of holds.keys()) expect(elsewhere).not.toContain(id);
      const held = [...holds.values()].reduce((sum, [hits]) => sum + hits, 0);
      expect([script, state?.held ?? 0]).toEqual([script, held]);
      // Then it counts as removed.
      if (state && holds.size === 0 && now >= Number(state.expires)) return 0;
      const hits = await redis.client.hgetall(key.names.took(0));
      expect(Object.keys(hits).filter((id) => !requests.includes(id))).toEqual([]);
      expect(state?.approved ?? 0).toBe(
        requests.reduce((sum, id) => sum + Number(hits[id] ?? 1), held),
      );
      return holds.size;
    });
  });

  test('no hold that has lapsed is left, and the state knows when the others may lapse', async () => {
    await afterAny(calls, [example], extent(15, 60), async (script, now) => {
      if (script === 'inspect') return 0;
      const { state, expiry } = await key.stored();
      const lapses = [...(await holdsOf()).values()].map(([, at]) => at);
      if (lapses.length === 0) {
        expect(state?.lapses).toBeUndefined();
        return 0;
      }
      const [first, last] = state!.lapses as [number, number];
      expect(first).toBeGreaterThan(now);
      expect(first).toBeLessThanOrEqual(Math.min(...lapses));
      expect(last).toBeGreaterThanOrEqual(Math.max(...lapses));
      for (const at of [expiry.records, expiry.lapses]) {
        expect(at).toBeGreaterThanOrEqual(Math.max(...lapses));
      }
      return lapses.length;
    });
  });
});

const algorithm: fc.Arbitrary<Algorithm> = fc.oneof(
  fc.constant(DEFAULT_ALGORITHM),
  fc.record({ name: fc.constant('sliding_window' as const), steps: fc.constantFrom(2, 10, 60) }),
  fc.record({ name: fc.constant('token_bucket' as const), burst: fc.constantFrom(1, 3, 8) }),
);

/** Rules of a key with any algorithms. */
const anyRules = fc.record({
  algorithm,
  maxRequests: fc.constantFrom(0, 2, 8),
  further: fc.array(
    fc.tuple(furtherLimit('a'), algorithm).map(([limit, its]) => ({ ...limit, algorithm: its })),
    { maxLength: 1 },
  ),
});

/** Calls about few ids by replicas whose rules have any algorithms, which change from call to call. */
const callsWithAlgorithms = fc
  .tuple(
    fc.array(callAbout(requestIdOf(3)), { minLength: 10, maxLength: 40, size: 'max' }),
    fc.array(anyRules, { minLength: 2, maxLength: 4 }),
    fc.array(fc.nat({ max: 12 }), { minLength: 40, maxLength: 40 }),
  )
  .map(([sequence, rules, choices]) =>
    // Most calls have the first rules.
    sequence.map((each, i): Call => ({ ...each, limits: rules[choices[i]! - 9] ?? rules[0]! })),
  );

/** The ids that are stored of a limit, by generation. */
function idsOf(name: string | undefined): Promise<number[]> {
  const hashes = [key.names.took(0, name), key.names.took(1, name)];
  return Promise.all(hashes.map((hash) => redis.client.hlen(hash)));
}

describe('after any calls of the scripts of a key with any algorithms', () => {
  // The harness itself fails if a name that exists has no expiry.
  test('every name has an expiry, and a fixed window has one generation of ids', async () => {
    const example = holdAndQueue({ maxRequests: 1, algorithm: { name: 'token_bucket', burst: 1 } });
    await afterAny(callsWithAlgorithms, [example], extent(8, 15), async () => {
      const { expiry } = await key.stored();
      const state = readStoredState(await redis.client.hgetall(key.names.state));
      let seen = Object.keys(expiry).length;
      for (const limit of state ? [{ ...state, name: undefined }, ...state.further] : []) {
        const [first = 0, second = 0] = await idsOf(limit.name);
        seen += first + second;
        if (limit.stored === undefined) expect([limit.name, second]).toEqual([limit.name, 0]);
      }
      return seen;
    });
  });
});

describe('a key that Redis has evicted alone', () => {
  test.each(['requests', 'queue', 'records', 'replicas'] as const)(
    'is given an expiry when it is made again: %s',
    async (evicted) => {
      const replica = key.replica('r1', { limits: { maxRequests: 3 } });
      await replica.check(['a', 'b']);
      await replica.checkOrWait(['c', 'd']);
      await key.lose(evicted);
      await replica.release('a');
      await replica.checkOrWait(['e', 'f']);
      expect(await key.expiry()).toHaveProperty('state');
    },
  );

  test('is given an expiry when the next approval makes it again', async () => {
    const replica = key.replica('r1');
    await replica.check(['a']);
    await key.lose('requests');
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await key.expiry()).toEqual({ state: 11_000, requests: 11_000 });
  });
});
