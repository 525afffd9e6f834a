import fc from 'fast-check';

import { ScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { sentAgain, unguarded } from '../../support/unguarded.js';
import { extent } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const requestId = fc.integer({ min: 1, max: 15 }).map((number) => `id${number}`);
const hits = fc.integer({ min: 1, max: 5 });
/** Some lapse within a window, some after several. */
const holdMillis = fc.constantFrom(100, 600, 1000, 2500, 9000);
const requestIds = fc.array(requestId, { minLength: 1, maxLength: 5 });
const replicaId = fc.constantFrom('r1', 'r2', 'r3');

/** One call of a script by a replica, `millis` after the one before; the clock can go back. */
const call = fc.record({
  millis: fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0, max: 400 }) },
    { weight: 2, arbitrary: fc.integer({ min: 900, max: 6000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -3000, max: 0 }) },
  ),
  replicaId,
  windowMillis: fc.constantFrom(1000, 1000, 1000, 250),
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
      requestIds,
    }),
    fc.record({
      script: fc.constant('settle' as const),
      tickets: fc.dictionary(requestId, fc.integer({ min: 1, max: 9_000_000 }), { maxKeys: 4 }),
      holdMillis: fc.option(holdMillis, { nil: undefined }),
    }),
    fc.record({ script: fc.constant('inspect' as const) }),
  ),
});

type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

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
  for (const { millis, windowMillis, step, replicaId } of calls) {
    now += millis;
    await key.setTime(now);
    const own = (id: string): string => `${replicaId}-${id}`;
    const options = { limits: { windowMillis }, leaseMillis: 2000 };
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
    ['that of the state', callsOfOneWindow, (expiry: number) => expiry],
    // Only the turn of a state that outlives its instance is needed.
    ['that of an instance, with any windows', calls, Math.min],
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
          for (const at of Object.values(expiry)) expect(at).toBeGreaterThanOrEqual(from);
        }),
      ),
      { numRuns: extent(12, 40) },
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
      { numRuns: extent(15, 60) },
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
      { numRuns: extent(15, 60) },
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
      { numRuns: extent(15, 60) },
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
          if (state!.isBlocked) return;
          expect(state!.approved).toBeGreaterThanOrEqual(Number(state!.max));
        }),
      ),
      { numRuns: extent(15, 60) },
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
      { numRuns: extent(15, 60) },
    );
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
