import fc from 'fast-check';

import { keysOf } from '../../../src/redis/scripts/shared-arguments.js';
import {
  type Overrides,
  ScriptHarness,
  TEST_KEPT_MILLIS,
  TEST_LEASE_MILLIS,
  type TestReplica,
  type Verdict,
} from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { extent } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1');
});

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

describe('a check', () => {
  test('makes the key and is approved', async () => {
    expect(await replica.check(['a'])).toEqual(['approved']);
    expect(await key.stored()).toEqual({
      withdrawnEntries: 0,
      pastRequests: expect.any(Array) as unknown,
      state: state({ approved: 1 }),
      requests: ['a'],
      queue: [],
      replicas: {},
      expiry: { state: 11_000, requests: 11_000 },
    });
  });

  test('is denied and counted when the window is full and it cannot wait', async () => {
    await fillWindow();
    await key.setTime(400);
    expect(await replica.check(['c'])).toEqual(['denied']);
    expect(await key.stored()).toEqual({
      withdrawnEntries: 0,
      pastRequests: expect.any(Array) as unknown,
      state: state({ approved: 2, denied: 1 }),
      requests: ['a', 'b'],
      queue: [],
      replicas: {},
      expiry: { state: 11_000, requests: 11_000 },
    });
  });

  test('joins the queue when the window is full and it can wait', async () => {
    await fillWindow();
    await key.setTime(400);
    expect(await replica.checkOrWait(['c'])).toEqual([400_000]);
    const expiresAt = 400 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toEqual({
      withdrawnEntries: 0,
      pastRequests: expect.any(Array) as unknown,
      state: state({ approved: 2, ticket: 400_000 }),
      requests: ['a', 'b'],
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

  test('gets "queue full" when the queue is full, and is not counted as denied', async () => {
    await fillWindow();
    await replica.checkOrWait(['c', 'd', 'e']);
    const before = await key.stored();
    expect(await replica.checkOrWait(['f'])).toEqual(['queue full']);
    expect(await key.stored()).toEqual(before);
  });

  test.each([
    [0, 1000],
    [1, 999],
    [999, 1],
    [1000, 1000],
    [1700, 300],
    [3999, 1],
  ])('at %d ms is told that the window ends in %d ms', async (now, millisToRoom) => {
    await replica.check(['a']);
    await key.setTime(now);
    const checks = ['b', 'c', 'd'].map((requestId) => ({ requestId, canWait: false }));
    const overrides = { maxRequests: undefined, maxRequestsInQueue: undefined };
    const replies = await replica.scripts.check([
      { names: key.names, overrides, waiting: undefined, checks },
    ]);
    expect(replies).toEqual([expect.objectContaining({ millisToRoom })]);
  });
});

describe('a batch', () => {
  test('is decided in its order', async () => {
    const canWait = { a: false, b: true, c: true, d: false, e: true, f: true, g: true, h: false };
    const batch = Object.entries(canWait).map(([requestId, wait]) => ({
      requestId,
      canWait: wait,
    }));
    expect(await replica.checkBatch(batch)).toEqual([
      'approved',
      'approved',
      1,
      'denied',
      2,
      3,
      'queue full',
      'denied',
    ]);
    expect(await key.stored()).toMatchObject({
      state: state({ approved: 2, denied: 2, ticket: 3 }),
      requests: ['a', 'b'],
      queue: [
        ['c@r1', 1],
        ['e@r1', 2],
        ['f@r1', 3],
      ],
    });
  });

  test('is decided as the same checks one by one', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(
          fc.record({
            requestId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
            canWait: fc.boolean(),
          }),
          { minLength: 1, maxLength: 8, selector: ({ requestId }) => requestId },
        ),
        async (checks) => {
          const [together, apart] = [
            await ScriptHarness.create(redis.client),
            await ScriptHarness.create(redis.client),
          ];
          const inOne = await together.replica('r1').checkBatch(checks);
          const oneByOne: Verdict[] = [];
          for (const check of checks) {
            oneByOne.push(...(await apart.replica('r1').checkBatch([check])));
          }
          expect(inOne).toEqual(oneByOne);
          expect(await together.stored()).toEqual(await apart.stored());
        },
      ),
      { numRuns: extent(15, 50) },
    );
  });
});

describe('a check that is sent again', () => {
  let again: TestReplica;
  beforeEach(() => {
    again = key.replica('r1', { guard: sentAgain });
  });

  test.each<[string, string[], Verdict[]]>([
    ['was approved', ['a'], ['approved']],
    ['was approved, among others', ['b', 'a'], ['approved', 'approved']],
    ['waits', ['c'], [1]],
    ['waits, among others', ['d', 'a', 'c'], [2, 'approved', 1]],
  ])('gets its first answer and changes nothing if it %s', async (_is, ids, answers) => {
    await fillWindow();
    await replica.checkOrWait(['c', 'd']);
    const before = await key.stored();
    await key.setTime(500);
    expect(await again.checkOrWait(ids)).toEqual(answers);
    expect(await key.stored()).toEqual(before);
  });

  test('takes no room if the window has room', async () => {
    await replica.check(['a']);
    expect(await again.check(['a', 'b', 'c'])).toEqual(['approved', 'approved', 'denied']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2, denied: 0 },
      requests: ['a', 'b'],
    });
  });

  test('is decided separately from new checks in its batch', async () => {
    await fillWindow();
    await replica.checkOrWait(['c']);
    expect(
      await again.checkBatch([
        { requestId: 'x', canWait: false },
        { requestId: 'b', canWait: false },
        { requestId: 'c', canWait: true },
        { requestId: 'd', canWait: true },
      ]),
    ).toEqual(['denied', 'approved', 1, 2]);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2, denied: 0 },
      queue: [
        ['c@r1', 1],
        ['d@r1', 2],
      ],
    });
  });

  test('is approved if it was served from the queue before', async () => {
    await fillWindow();
    await replica.checkOrWait(['c']);
    await replica.release('a');
    const before = await key.stored();
    expect(await again.checkOrWait(['c'])).toEqual(['approved']);
    expect(await key.stored()).toEqual(before);
  });

  test('is approved if its turn comes with the window of the second call', async () => {
    await fillWindow();
    await replica.checkOrWait(['c']);
    await key.setTime(1000);
    expect(await again.checkOrWait(['c', 'd', 'e'])).toEqual(['approved', 'approved', 1_000_000]);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2 },
      requests: ['c', 'd'],
      queue: [['e@r1', 1_000_000]],
    });
  });

  test('never takes a second place in the queue when the queue is full', async () => {
    await fillWindow();
    await replica.checkOrWait(['c', 'd', 'e']);
    expect(await again.checkOrWait(['e', 'f'])).toEqual([3, 'queue full']);
  });
});

describe('windows', () => {
  test('end exactly after their length, to the millisecond', async () => {
    await fillWindow();
    await key.setTime(999);
    expect(await replica.check(['c'])).toEqual(['denied']);
    await key.setTime(1000);
    expect(await replica.check(['d'])).toEqual(['approved']);
    expect(await key.stored()).toEqual({
      withdrawnEntries: 0,
      pastRequests: expect.any(Array) as unknown,
      state: state({ start: 1000, approved: 1, expires: 5000 }),
      requests: ['d'],
      queue: [],
      replicas: {},
      expiry: { state: 12_000, requests: 12_000 },
    });
  });

  test('stay anchored to the first check, whenever later checks come', async () => {
    const starts: unknown[] = [];
    for (const now of [0, 999, 1500, 4200, 4999, 5000, 8999]) {
      await key.setTime(now);
      await replica.check([`at ${now}`]);
      starts.push((await key.stored()).state?.start);
    }
    expect(starts).toEqual([0, 0, 1000, 4000, 4000, 5000, 8000]);
  });

  test('are skipped without a check, and the waiters are served once', async () => {
    const patient = key.replica('r1', { leaseMillis: 3_600_000 });
    await fillWindow();
    await patient.checkOrWait(['c', 'd', 'e']);
    await key.setTime(100_500);
    expect(await patient.checkOrWait(['f'])).toEqual([100_500_000]);
    expect(await key.stored()).toMatchObject({
      state: { start: 100_000, approved: 2, expires: 104_000 },
      requests: ['c', 'd'],
      queue: [
        ['e@r1', 3],
        ['f@r1', 100_500_000],
      ],
    });
  });

  test.each([
    [300, { start: 1000, window: 300, expires: 2200 }, 1300],
    [5000, { start: 1000, window: 5000, expires: 21_000 }, 6000],
  ])('take a changed length, such as %d ms, at their end', async (windowMillis, next, nextEnd) => {
    const changed = key.replica('r2', { limits: { windowMillis } });
    await replica.check(['a']);
    await key.setTime(999);
    await changed.check(['b']);
    expect((await key.stored()).state).toMatchObject({ start: 0, window: 1000, approved: 2 });
    await key.setTime(1000);
    await changed.check(['c']);
    expect((await key.stored()).state).toMatchObject({ ...next, approved: 1 });
    await key.setTime(nextEnd - 1);
    await changed.check(['d']);
    expect((await key.stored()).state).toMatchObject({ start: 1000, approved: 2 });
    await key.setTime(nextEnd);
    await changed.check(['e']);
    expect((await key.stored()).state).toMatchObject({ start: nextEnd, approved: 1 });
  });
});

describe('the limits', () => {
  test.each([
    [3, ['approved', 'approved', 'denied']],
    [1, ['denied', 'denied', 'denied']],
  ])("follow the caller's defaults, such as a maximum of %d", async (maxRequests, verdicts) => {
    await replica.check(['a']);
    const changed = key.replica('r2', { limits: { maxRequests, maxRequestsInQueue: 9 } });
    expect(await changed.check(['b', 'c', 'd'])).toEqual(verdicts);
    expect((await key.stored()).state).toMatchObject({
      max: maxRequests,
      queueMax: 9,
      overridden: [],
    });
  });

  test.each([
    [{ maxRequests: 5 }, { max: 5, queueMax: 8, overridden: ['max'] }],
    [{ maxRequestsInQueue: 0 }, { max: 9, queueMax: 0, overridden: ['queueMax'] }],
    [
      { maxRequests: 5, maxRequestsInQueue: 6 },
      { max: 5, queueMax: 6, overridden: ['max', 'queueMax'] },
    ],
    [
      { maxRequests: 2, maxRequestsInQueue: 3 },
      { max: 2, queueMax: 3, overridden: ['max', 'queueMax'] },
    ],
  ])('that %j overrides no longer follow a default', async (overrides, fields) => {
    const other = key.replica('r2', { limits: { maxRequests: 9, maxRequestsInQueue: 8 } });
    await replica.check(['a'], overrides);
    for (const now of [0, 1000, 3500]) {
      await key.setTime(now);
      await other.check([`at ${now}`]);
      expect((await key.stored()).state).toMatchObject(fields);
    }
  });

  test('are overridden one after the other', async () => {
    await replica.check(['a'], { maxRequestsInQueue: 7 });
    await replica.check(['b'], { maxRequests: 5 });
    await replica.check(['c'], { maxRequests: 6 });
    expect((await key.stored()).state).toMatchObject({
      max: 6,
      queueMax: 7,
      overridden: ['max', 'queueMax'],
    });
  });

  test('are the defaults again after the key was removed', async () => {
    await replica.check(['a'], { maxRequests: 5, maxRequestsInQueue: 0 });
    await key.setTime(4000);
    await replica.check(['b']);
    expect((await key.stored()).state).toEqual(
      // Redis has not lost the key, since its memory of approvals outlives the instance.
      {
        ...state({ start: 4000, approved: 1, ticket: 0, expires: 8000, born: 0 }),
        limitsSince: 4000,
      },
    );
  });

  test('hold for the check that overrides them', async () => {
    expect(await replica.check(['a', 'b'], { maxRequests: 1 })).toEqual(['approved', 'denied']);
    expect(await replica.checkOrWait(['c'], { maxRequestsInQueue: 0 })).toEqual(['queue full']);
  });
});

describe('raising the maximum within the window', () => {
  beforeEach(async () => {
    await fillWindow();
    await replica.checkOrWait(['c', 'd']);
    await key.setTime(10);
  });

  test('serves the queue before the check that raises it', async () => {
    expect(await replica.checkOrWait(['e'], { maxRequests: 3 })).toEqual([10_000]);
    expect(await key.stored()).toMatchObject({
      state: { approved: 3, max: 3 },
      requests: ['a', 'b', 'c'],
      queue: [
        ['d@r1', 2],
        ['e@r1', 10_000],
      ],
    });
  });

  test('also approves the check if there is room for it', async () => {
    expect(await replica.check(['e', 'f'], { maxRequests: 5 })).toEqual(['approved', 'denied']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 5 },
      requests: ['a', 'b', 'c', 'd', 'e'],
      queue: [],
      replicas: {},
      // After an outage replicas may ask about approvals from the queue.
      expiry: { state: 30_010, requests: 30_010 },
    });
  });

  test('serves the queue if a default was raised', async () => {
    const changed = key.replica('r2', { limits: { maxRequests: 3 } });
    expect(await changed.check(['e'])).toEqual(['denied']);
    expect((await key.stored()).requests).toEqual(['a', 'b', 'c']);
  });

  test('publishes one wake for the waiters that it serves', async () => {
    const wakes = await recordWakes(key.names.wakeChannel);
    await replica.check(['e'], { maxRequests: 5 });
    await replica.check(['f']);
    expect(await wakes.take()).toEqual([
      `{"at":${key.startMillis + 10},"number":1,"millisToRoom":990,"waiting":0,"waitingFrom":${key.absoluteTicket(10_000)},` +
        '"limits":"1000:5*:3","max":5,"approved":5,"granted":["c","d"]}',
    ]);
  });
});

describe('lowering', () => {
  test('the maximum takes no approval back, and serves nobody until there is room', async () => {
    await fillWindow();
    await replica.checkOrWait(['c']);
    expect(await replica.check(['d'], { maxRequests: 1 })).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { max: 1, approved: 2 },
      requests: ['a', 'b'],
      queue: [['c@r1', 1]],
    });
    await replica.release('a');
    expect(await key.stored()).toMatchObject({ requests: ['b'], queue: [['c@r1', 1]] });
    await key.setTime(1000);
    expect(await replica.check(['e'])).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({ state: { approved: 1 }, requests: ['c'] });
  });

  test('the maximum of the queue removes no waiter', async () => {
    await fillWindow();
    await replica.checkOrWait(['c', 'd']);
    expect(await replica.checkOrWait(['e'], { maxRequestsInQueue: 1 })).toEqual(['queue full']);
    expect((await key.stored()).queue).toHaveLength(2);
  });
});

describe('a queue that looks full', () => {
  const long = { limits: { windowMillis: 60_000 } };

  test('has room again when the lease of a replica has run out', async () => {
    const dead = key.replica('dead', long);
    const living = key.replica('living', { ...long, history: { since: 0 } });
    await dead.check(['a', 'b']);
    await dead.checkOrWait(['c', 'd', 'e']);
    await key.setTime(TEST_LEASE_MILLIS - 1);
    expect(await living.checkOrWait(['f'])).toEqual(['queue full']);
    await key.setTime(TEST_LEASE_MILLIS);
    expect(await living.checkOrWait(['f'])).toEqual([TEST_LEASE_MILLIS * 1000]);
    expect(await living.inspect()).toMatchObject({ used: 2, waiting: 1 });
  });

  test('keeps the waiters of living replicas in their order, and serves no others', async () => {
    const [dead, living] = [key.replica('dead', long), key.replica('living', long)];
    await dead.check(['a', 'b']);
    await dead.checkOrWait(['c']);
    await key.setTime(3000);
    await living.checkOrWait(['d', 'e']);
    await key.setTime(TEST_LEASE_MILLIS);
    expect(await living.checkOrWait(['f', 'g'])).toEqual([5_000_000, 'queue full']);
    await living.release('a');
    await living.release('b');
    expect(await key.stored()).toMatchObject({
      requests: ['d', 'e'],
      queue: [['f@living', 5_000_000]],
      replicas: { living: 2 * TEST_LEASE_MILLIS },
    });
    expect(Object.keys((await key.stored()).replicas)).toEqual(['living']);
  });

  test('stays full if waiters of living replicas fill it', async () => {
    const [dead, living] = [key.replica('dead', long), key.replica('living', long)];
    await dead.check(['a', 'b']);
    await dead.checkOrWait(['c']);
    await key.setTime(3000);
    await living.checkOrWait(['d', 'e']);
    await key.setTime(TEST_LEASE_MILLIS);
    expect(await living.checkOrWait(['f'], { maxRequestsInQueue: 2 })).toEqual(['queue full']);
    expect(await living.inspect()).toMatchObject({ waiting: 2 });
  });
});

describe('tickets', () => {
  test('strictly increase, whatever the clock does', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: -3000, max: 3000 }), { minLength: 2, maxLength: 12 }),
        async (times) => {
          const clocked = await ScriptHarness.create(redis.client);
          const { windowMillis } = { windowMillis: 100_000 };
          const waiting = clocked.replica('r1', {
            limits: { windowMillis, maxRequests: 1, maxRequestsInQueue: 100 },
          });
          await waiting.check(['a']);
          let last = -1;
          for (const [i, time] of times.entries()) {
            await clocked.setTime(time);
            const tickets = await waiting.checkOrWait([`first ${i}`, `second ${i}`]);
            for (const ticket of tickets) {
              expect(ticket).toBeGreaterThan(last);
              last = Number(ticket);
            }
          }
          const { queue } = await clocked.stored();
          expect(queue.map(([member]) => member)).toEqual(
            times.flatMap((_time, i) => [`first ${i}@r1`, `second ${i}@r1`]),
          );
        },
      ),
      { numRuns: extent(10, 30) },
    );
  });

  test('go on from the last ticket while the clock stands still', async () => {
    await fillWindow();
    expect(await replica.checkOrWait(['c'])).toEqual([1]);
    expect(await replica.checkOrWait(['d'])).toEqual([2]);
  });

  test('go on from the last ticket after the queue was empty', async () => {
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

describe('the rest of a key whose state was lost', () => {
  test('counts no approvals, and serves its waiters first', async () => {
    await fillWindow();
    await replica.checkOrWait(['c']);
    await redis.client.del(key.names.state);
    await key.setTime(300);
    expect(await replica.check(['d', 'e'])).toEqual(['approved', 'denied']);
    expect(await key.stored()).toEqual({
      withdrawnEntries: 0,
      pastRequests: expect.any(Array) as unknown,
      state: state({
        start: 300,
        approved: 2,
        denied: 1,
        ticket: 300_000,
        expires: 4300,
        born: 300,
        served: 300,
      }),
      requests: ['c', 'd'],
      queue: [],
      replicas: {},
      expiry: { state: 30_300, requests: 30_300 },
    });
  });
});

describe('a check whose ticket shows that Redis has lost a queue', () => {
  const checkKnowing = (
    requestId: string,
    lowestTicket: number,
    overrides?: Overrides,
  ): Promise<Verdict[]> =>
    replica.checkBatch([{ requestId, canWait: false }], overrides, {
      lowestTicket,
      millisToWindowEnd: 700,
      limits: '1000:2:3',
    });

  async function loseQueue(): Promise<void> {
    await fillWindow();
    await replica.checkOrWait(['c']);
    await redis.client.del(...keysOf(key.names));
    await key.setTime(300);
  }

  test('restores the full window, calls for the other waiters, and overtakes nobody', async () => {
    await loseQueue();
    const wakes = await recordWakes(key.names.wakeChannel);
    expect(await checkKnowing('x', 1)).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { start: 0, approved: 2, born: 300, holdUntil: 800 },
    });
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);

    await key.setTime(1000);
    expect(await replica.check(['y'])).toEqual(['approved']);
  });

  test('begins a recovery hold for a key that a newcomer has made again', async () => {
    await loseQueue();
    const other = key.replica('r2');
    expect(await other.check(['x'])).toEqual(['approved']);
    expect(await checkKnowing('y', 1)).toEqual(['denied']);
    expect(await other.check(['z'])).toEqual(['denied']);
    await replica.settle({ c: 1 });
    await key.setTime(800);
    await replica.settle();
    expect(await key.stored()).toMatchObject({
      state: { holdUntil: 'no' },
      requests: ['c', 'x'],
      queue: [],
    });
  });

  test('begins a recovery hold once if the waiter comes back in it', async () => {
    await loseQueue();
    await key.replica('r2').check(['x']);
    const wakes = await recordWakes(key.names.wakeChannel);
    await checkKnowing('y', 1);
    await replica.settle({ c: 1 });
    await key.setTime(799);
    await checkKnowing('y', 1);
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    await key.setTime(800);
    expect(await checkKnowing('z', 1)).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { holdUntil: 'no' },
      requests: ['c', 'x'],
    });
  });

  test('begins a recovery hold also if the key is no longer new', async () => {
    await loseQueue();
    const other = key.replica('r2');
    await other.check(['x']);
    await key.setTime(1500);
    const wakes = await recordWakes(key.names.wakeChannel);
    expect(await checkKnowing('y', 1)).toEqual(['denied']);
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    expect(await other.check(['z'])).toEqual(['denied']);
    await replica.settle({ c: 1 });
    await key.setTime(2000);
    expect((await replica.settle()).granted).toEqual(['c']);
  });

  test('restores the full window with the maximum of its override', async () => {
    await loseQueue();
    expect(await checkKnowing('x', 1, { maxRequests: 5 })).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({ state: { approved: 2, max: 5, holdUntil: 800 } });
  });

  test('does nothing if the ticket belongs to this key', async () => {
    await fillWindow();
    expect(await replica.checkOrWait(['c'])).toEqual([1]);
    await key.setTime(400);
    expect(await checkKnowing('d', 1)).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({ state: { born: 0, holdUntil: 'no' } });
  });
});
