import fc from 'fast-check';

import {
  ScriptHarness,
  useScriptHarness,
  TEST_KEPT_MILLIS,
  TEST_LEASE_MILLIS,
  type Verdict,
} from '../../support/script-harness.js';
import { extent } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const key = useScriptHarness(redis);
const together = useScriptHarness(redis);
const apart = useScriptHarness(redis);
const replica = key.replica('r1');

/** The fields of the state after the first check at 0, with the given changes. */
const state = (changed: Record<string, unknown> = {}): Record<string, unknown> => ({
  start: 0,
  window: 1000,
  max: 2,
  queueMax: 3,
  approved: 0,
  denied: 0,
  ticket: 0,
  expires: 4000,
  overridden: [],
  born: 0,
  holdUntil: 'no',
  turn: expect.any(Number) as number,
  isUnsorted: false,
  isServing: false,
  served: 'never',
  ...changed,
});

/** Fills the window: a and b approved. */
const fillWindow = (): Promise<Verdict[]> => replica.check(['a', 'b']);

test('a check makes the key, whose names expire three windows after the last', async () => {
  expect(await replica.check(['a'])).toEqual(['approved']);
  expect(await key.stored()).toEqual({
    withdrawnEntries: 0,
    pastRequests: ['a'],
    state: state({ approved: 1 }),
    requests: ['a'],
    queue: [],
    replicas: {},
    expiry: { state: 11_000, requests: 11_000 },
  });
});

test('a check that joins the queue keeps all names for 21 leases', async () => {
  await fillWindow();
  await key.setTime(400);
  expect(await replica.checkOrWait(['c'])).toEqual([400_000]);
  const expiresAt = 400 + TEST_KEPT_MILLIS;
  expect(await key.stored()).toMatchObject({
    state: state({ approved: 2, ticket: 400_000 }),
    queue: [['c@r1', 400_000]],
    replicas: { r1: 400 + TEST_LEASE_MILLIS },
    expiry: {
      state: expiresAt,
      requests: expiresAt,
      queue: expiresAt,
      waiting: expiresAt,
      replicas: expiresAt,
    },
  });
});

test('a check that raises the maximum publishes one wake for the waiters that it serves', async () => {
  await fillWindow();
  await replica.checkOrWait(['c', 'd']);
  await key.setTime(10);
  const wakes = await recordWakes(key.names.wakeChannel);
  await replica.check(['e'], { maxRequests: 5 });
  await replica.check(['f']);
  expect(await wakes.take()).toEqual([
    `{"at":${key.startMillis + 10},"number":1,"millisToRoom":990,"waiting":0,"waitingFrom":${key.absoluteTicket(10_000)},` +
      '"limits":"1000:5*:3","max":5,"approved":5,"granted":["c","d"]}',
  ]);
});

test('a batch is decided as the same checks one by one', async () => {
  const check = fc.record({
    requestId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
    canWait: fc.boolean(),
  });
  const checks = fc.uniqueArray(check, {
    minLength: 1,
    maxLength: 8,
    selector: ({ requestId }) => requestId,
  });
  await fc.assert(
    fc.asyncProperty(checks, async (batch) => {
      await together.begin();
      await apart.begin();
      const oneByOne: Verdict[] = [];
      for (const each of batch) {
        oneByOne.push(...(await apart.replica('r1').checkBatch([each])));
      }
      expect(await together.replica('r1').checkBatch(batch)).toEqual(oneByOne);
      expect(await together.stored()).toEqual(await apart.stored());
    }),
    { numRuns: extent(15, 50) },
  );
});

test('a full queue has room again when the lease of a replica has run out, and serves no dead waiters', async () => {
  const long = { limits: { windowMillis: 60_000 } };
  const [dead, living] = [key.replica('dead', long), key.replica('living', long)];
  await dead.check(['a', 'b']);
  await dead.checkOrWait(['c']);
  await key.setTime(3000);
  await living.checkOrWait(['d', 'e']);
  await key.setTime(TEST_LEASE_MILLIS - 1);
  expect(await living.checkOrWait(['f'])).toEqual(['queue full']);
  await key.setTime(TEST_LEASE_MILLIS);
  expect(await living.checkOrWait(['f', 'g'])).toEqual([5_000_000, 'queue full']);
  await living.release('a');
  await living.release('b');
  const stored = await key.stored();
  expect(stored).toMatchObject({ requests: ['d', 'e'], queue: [['f@living', 5_000_000]] });
  expect(stored.replicas).toEqual({ living: 2 * TEST_LEASE_MILLIS });
});

describe('tickets', () => {
  test('strictly increase, whatever the clock does', async () => {
    const times = fc.array(fc.integer({ min: -3000, max: 3000 }), { minLength: 2, maxLength: 12 });
    const limits = { windowMillis: 100_000, maxRequests: 1, maxRequestsInQueue: 100 };
    await fc.assert(
      fc.asyncProperty(times, async (sequence) => {
        await key.begin();
        const waiting = key.replica('r1', { limits });
        await waiting.check(['a']);
        const tickets: Verdict[] = [];
        for (const [i, time] of sequence.entries()) {
          await key.setTime(time);
          tickets.push(...(await waiting.checkOrWait([`first ${i}`, `second ${i}`])));
        }
        expect([...new Set(tickets)].sort((a, b) => Number(a) - Number(b))).toEqual(tickets);
        expect((await key.stored()).queue.map(([waiter]) => waiter)).toEqual(
          sequence.flatMap((_time, i) => [`first ${i}@r1`, `second ${i}@r1`]),
        );
      }),
      { numRuns: extent(10, 30) },
    );
  });

  test('go on from the last one after the queue was empty', async () => {
    await fillWindow();
    await key.setTime(500);
    expect(await replica.checkOrWait(['c'])).toEqual([500_000]);
    await replica.withdraw(['c']);
    await key.setTime(100);
    expect(await replica.checkOrWait(['d'])).toEqual([500_001]);
  });
});

describe('a clock that goes back', () => {
  beforeEach(async () => {
    await fillWindow();
    await replica.checkOrWait(['c']);
  });

  test.each([-1, -1001, -50_000])(
    'to %d: the window begins then, as full as it is',
    async (now) => {
      const before = await key.stored();
      await key.setTime(now);
      expect(await replica.check(['d'])).toEqual(['denied']);
      expect(await key.stored()).toMatchObject({
        state: { ...before.state, start: now, denied: 1, expires: now + 4000 },
        requests: before.requests,
        replicas: { r1: now + TEST_LEASE_MILLIS },
      });
      expect((await replica.settle()).millisToRoom).toBe(1000);
      await key.setTime(now + 999);
      expect(await replica.check(['e'])).toEqual(['denied']);
      await key.setTime(now + 1000);
      expect(await replica.check(['e', 'f'])).toEqual(['approved', 'denied']);
      expect((await key.stored()).requests).toEqual(['c', 'e']);
    },
  );

  test('lets the waiters of a dead replica keep their places for a lease at most', async () => {
    await key.replica('dead').checkOrWait(['first']);
    await replica.pause(60_000);
    const waitingAfter = async (millis: number): Promise<number> => {
      await key.setTime(-3_600_000 + millis);
      return (await replica.settle()).waiting;
    };
    expect(await waitingAfter(0)).toBe(2);
    // Replicas that live renew their leases.
    expect(await waitingAfter(TEST_LEASE_MILLIS / 2)).toBe(2);
    expect(await waitingAfter(TEST_LEASE_MILLIS - 1)).toBe(2);
    expect(await waitingAfter(TEST_LEASE_MILLIS)).toBe(1);
  });

  test('shortens leases also within a window, as tickets of the future show', async () => {
    await key.setTime(900);
    await replica.check(['d'], { windowMillis: 3_600_000 });
    await key.setTime(1000);
    await replica.check(['e', 'f']);
    await key.setTime(3_000_000);
    await key.replica('dead').checkOrWait(['first']);
    await key.setTime(2000);
    await replica.settle();
    expect((await key.stored()).replicas).toEqual({ dead: 2000 + TEST_LEASE_MILLIS });
  });

  test('begins no pause again that was over when the key was idle', async () => {
    const other = await ScriptHarness.create(redis.client);
    const brief = other.replica('r1', { limits: { windowMillis: 60 }, leaseMillis: 600 });
    await brief.pause(60);
    await other.setTime(545);
    await brief.pause(0);
    await other.setTime(-55);
    expect(await brief.check(['a'])).toEqual(['approved']);
  });

  test('gives no ticket a second time in a key that has been idle', async () => {
    const { queue } = await key.stored();
    await key.setTime(-50_000);
    await replica.check(['d']);
    const now = -50_000 + TEST_LEASE_MILLIS;
    const later = key.replica('r2', { history: { since: -50_000, until: now } });
    await key.setTime(now);
    await later.check(['e', 'f']);
    await later.checkOrWait(['g']);
    const [[, ticket]] = queue as [[string, number]];
    expect((await key.stored()).queue).toEqual([['g@r2', ticket + 1]]);
    await replica.settle({ c: ticket });
    await key.setTime(now + 1000);
    expect((await later.settle()).granted).toEqual(['c', 'g']);
  });

  test('shortens leases within a window, as the last call with a waiter shows', async () => {
    await key.setTime(900);
    await key.replica('dead').checkOrWait(['first']);
    await key.setTime(100);
    await replica.check(['d']);
    expect((await key.stored()).replicas).toMatchObject({ dead: 100 + TEST_LEASE_MILLIS });
  });

  test('shortens leases within a window after renewals, as the own lease of a replica shows', async () => {
    const dead = key.replica('dead');
    await dead.checkOrWait(['first']);
    await key.setTime(900);
    await dead.renew(1);
    await replica.renew(1);
    await key.setTime(100);
    expect(await replica.renew(1)).toBe(false);
    await replica.settle();
    const leaseEnds = 100 + TEST_LEASE_MILLIS;
    expect((await key.stored()).replicas).toEqual({ r1: leaseEnds, dead: leaseEnds });
  });
});

test('a lease is as long as its replica has it, while others have shorter ones', async () => {
  await fillWindow();
  await key.replica('long', { leaseMillis: 60_000 }).checkOrWait(['c']);
  await replica.checkOrWait(['d']);
  expect((await key.stored()).replicas).toEqual({ long: 60_000, r1: TEST_LEASE_MILLIS });
});
