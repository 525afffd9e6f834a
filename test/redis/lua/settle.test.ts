import { keysOf } from '../../../src/redis/scripts/shared-arguments.js';
import {
  ScriptHarness,
  TEST_KEPT_MILLIS,
  TEST_LEASE_MILLIS,
  type TestReplica,
} from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder, type WakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

let key: ScriptHarness;
let r1: TestReplica;
let r2: TestReplica;
let wakes: WakeRecorder;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  [r1, r2] = [key.replica('r1'), key.replica('r2')];
  wakes = await recordWakes(key.names.wakeChannel);
});

/** Approves a and b. c and e wait on r1, d on r2, with the tickets 1, 3 and 2. */
async function fill(): Promise<void> {
  await r1.check(['a', 'b']);
  await r1.checkOrWait(['c']);
  await r2.checkOrWait(['d']);
  await r1.checkOrWait(['e']);
}

const loseEverything = (): Promise<number> => redis.client.del(...keysOf(key.names));

/** Ends the recovery hold of a key that was lost when the clock was at `lostAt`. */
async function endHold(lostAt = 0): Promise<void> {
  await key.setTime(lostAt + 500);
  await r1.settle();
}

describe('an unknown key', () => {
  test('is reported as unknown and not made', async () => {
    expect(await r1.settle()).toEqual({
      millisToRoom: undefined,
      wakeNumber: 0,
      waiting: 0,
      places: 0,
      limits: '',
      used: 0,
      at: 0,
      putBack: [],
      granted: [],
      holdsLeft: new Map(),
    });
    expect((await key.stored()).expiry).toEqual({});
  });
});

describe('within the window', () => {
  test('nobody is served, and the caller learns the state of the queue', async () => {
    await fill();
    await key.setTime(999);
    expect(await r1.settle()).toEqual({
      millisToRoom: 1,
      wakeNumber: 0,
      waiting: 3,
      places: 2,
      limits: '1000:2:3',
      used: 2,
      at: 999,
      putBack: [],
      granted: [],
      holdsLeft: new Map(),
    });
    expect(await wakes.take()).toEqual([]);
  });

  test("the caller's lease is renewed, and no other's", async () => {
    await fill();
    await key.setTime(600);
    await r1.settle();
    const expiresAt = 600 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toMatchObject({
      replicas: { r1: 600 + TEST_LEASE_MILLIS, r2: TEST_LEASE_MILLIS },
      expiry: { state: expiresAt, requests: expiresAt, queue: expiresAt, replicas: expiresAt },
    });
  });

  test('the caller gets no lease if nobody waits', async () => {
    await r1.check(['a']);
    const before = await key.stored();
    await key.setTime(500);
    await r1.settle();
    expect(await key.stored()).toEqual(before);
  });
});

describe('at the end of the window', () => {
  beforeEach(async () => {
    await fill();
    await key.setTime(1000);
  });

  test('the queue is served from its head while there is room', async () => {
    expect(await r1.settle()).toEqual({
      millisToRoom: 1000,
      wakeNumber: 1,
      waiting: 1,
      places: 1,
      limits: '1000:2:3',
      used: 2,
      at: 1000,
      putBack: [],
      granted: ['c', 'd'],
      holdsLeft: new Map(),
    });
    const keptUntil = 1000 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toMatchObject({
      state: { start: 1000, approved: 2, denied: 0, expires: 5000 },
      requests: ['c', 'd'],
      queue: [['e@r1', 3]],
      replicas: { r1: 6000 },
      expiry: { state: keptUntil, requests: keptUntil, queue: keptUntil, replicas: keptUntil },
    });
  });

  test('the first call publishes one wake, and a later call none', async () => {
    await r1.settle();
    await r2.settle();
    expect(await wakes.take()).toEqual([
      `{"at":${key.startMillis + 1000},"number":1,"millisToRoom":1000,"waiting":1,"waitingFrom":${key.absoluteTicket(3)},` +
        '"limits":"1000:2:3","max":2,"approved":2,"granted":["c","d"]}',
    ]);
  });

  test('a later caller learns of its own approvals only if it asks', async () => {
    await r1.settle();
    expect((await r2.settle()).granted).toEqual([]);
    expect((await r2.settle({ d: 2 })).granted).toEqual(['d']);
  });

  test('all waiters are served, window by window', async () => {
    expect((await r1.settle()).granted).toEqual(['c', 'd']);
    await key.setTime(1999);
    expect((await r1.settle()).granted).toEqual([]);
    await key.setTime(2000);
    expect(await r1.settle()).toMatchObject({
      millisToRoom: 1000,
      waiting: 0,
      granted: ['e'],
    });
    expect(await key.stored()).toMatchObject({
      state: { approved: 1, expires: 6000 },
      replicas: {},
      // After an outage replicas may ask about approvals from the queue.
      expiry: { state: 32000, requests: 32000 },
    });
  });
});

test('the waiters of dead replicas are passed over without using capacity', async () => {
  const long = { limits: { windowMillis: 10_000 } };
  const [dead, living] = [key.replica('dead', long), key.replica('living', long)];
  await dead.check(['a', 'b']);
  await dead.checkOrWait(['c', 'd']);
  await key.setTime(9000);
  await living.checkOrWait(['e']);
  await key.setTime(10_000);
  expect(await living.settle()).toMatchObject({ granted: ['e'], waiting: 0 });
  expect(await key.stored()).toMatchObject({ state: { approved: 1 }, requests: ['e'], queue: [] });
  expect(await living.check(['f', 'g'])).toEqual(['approved', 'denied']);
});

describe('when Redis was down for longer than the leases', () => {
  const long = { limits: { windowMillis: 10_000, maxRequests: 2 } };
  let first: TestReplica;
  let second: TestReplica;
  beforeEach(async () => {
    [first, second] = [key.replica('first', long), key.replica('second', long)];
    await first.check(['a', 'b']);
    await first.checkOrWait(['c']);
    await second.checkOrWait(['d']);
    await first.checkOrWait(['e']);
    await key.setTime(12_000);
  });

  test('no replica counts as dead, and no waiter is approved, before all had time to come back', async () => {
    expect(await second.settle()).toMatchObject({
      millisToRoom: 500,
      waiting: 3,
      granted: [],
    });
    await key.setTime(12_499);
    expect(await second.check(['x'])).toEqual(['denied']);
    expect((await first.settle()).granted).toEqual([]);
    await key.setTime(12_500);
    expect((await second.settle()).granted).toEqual(['c', 'd']);
  });

  test('the waiters of a replica that has not come back by then are passed over', async () => {
    await second.settle();
    await key.setTime(12_500);
    expect((await second.settle()).granted).toEqual(['d']);
    expect((await key.stored()).state).toMatchObject({ approved: 1, holdUntil: 'no' });
  });

  test('the key is also held if a newcomer comes first', async () => {
    expect(await key.replica('third', long).check(['x'])).toEqual(['denied']);
    await second.settle();
    await first.settle();
    await key.setTime(12_500);
    expect((await second.settle()).granted).toEqual(['c', 'd']);
  });

  test('the key is also held if Redis went down in a recovery hold, and came back after it', async () => {
    await loseEverything();
    await second.settle({ d: 2 });
    await first.settle({ c: 1, e: 3 });
    expect((await key.stored()).state).toMatchObject({ holdUntil: 12_500 });
    await key.setTime(20_000);
    expect(await second.settle()).toMatchObject({ millisToRoom: 500, granted: [] });
    await first.settle();
    await key.setTime(20_500);
    expect((await second.settle()).granted).toEqual(['c', 'd']);
  });
});

describe("the number of the caller's places", () => {
  test('does not count those of other replicas, or withdrawn ones', async () => {
    await fill();
    expect([(await r1.settle()).places, (await r2.settle()).places]).toEqual([2, 1]);
    await r1.withdraw(['c']);
    expect((await r1.settle()).places).toBe(1);
  });

  test('shows that a failover has lost one', async () => {
    await r1.check(['a', 'b']);
    const { state } = key.names;
    const copied = await redis.client.dumpBuffer(state);
    await key.setTime(10);
    await r1.checkOrWait(['c']);
    // The copy that is promoted has not seen the last call.
    const expiresAt = key.startMillis + 4000;
    await redis.client.del(key.names.queue, key.names.waiting, key.names.replicas);
    await redis.client.restore(state, expiresAt, copied, 'REPLACE', 'ABSTTL');
    await key.setTime(1000);
    expect(await r1.settle()).toMatchObject({ waiting: 0, places: 0, wakeNumber: 0 });
  });
});

describe('a waiter that is asked about', () => {
  test('is reported if it was approved in this window', async () => {
    await fill();
    await r1.release('a');
    expect((await r1.settle({ c: 1, e: 3 })).granted).toEqual(['c']);
    expect((await key.stored()).queue).toEqual([
      ['d@r2', 2],
      ['e@r1', 3],
    ]);
  });

  test('keeps its place if it waits', async () => {
    await fill();
    const { queue } = await key.stored();
    expect((await r1.settle({ e: 3, c: 1 })).granted).toEqual([]);
    expect((await key.stored()).queue).toEqual(queue);
  });

  test('is approved once if its turn comes with this call', async () => {
    await fill();
    await key.setTime(1000);
    expect((await r1.settle({ e: 3, c: 1 })).granted).toEqual(['c', 'd']);
    expect((await key.stored()).state).toMatchObject({ approved: 2 });
  });
});

describe('lost waiters', () => {
  test('are put back in the order of their tickets, whatever the order of the call', async () => {
    await fill();
    await loseEverything();
    await key.setTime(300);
    expect(await r1.settle({ e: 3, d: 2, c: 1 }, 700)).toEqual({
      millisToRoom: 700,
      millisToLook: 300,
      wakeNumber: 0,
      waiting: 3,
      places: 3,
      limits: '1000:2:3',
      used: 2,
      at: 300,
      putBack: ['c', 'd', 'e'],
      granted: [],
      holdsLeft: new Map(),
    });
    const keptUntil = 300 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toEqual({
      state: {
        start: 0,
        window: 1000,
        max: 2,
        queueMax: 3,
        approved: 2,
        denied: 0,
        ticket: 300_000,
        expires: 4000,
        overridden: [],
        born: 300,
        limitsSince: 0,
        holdUntil: 800,
        turn: 1,
        isUnsorted: false,
        isServing: false,
        served: 'never',
      },
      requests: [],
      pastRequests: [],
      withdrawnEntries: 0,
      queue: [
        ['c@r1', 1],
        ['d@r1', 2],
        ['e@r1', 3],
      ],
      replicas: { r1: 5300 },
      expiry: { state: keptUntil, queue: keptUntil, waiting: keptUntil, replicas: keptUntil },
    });
  });

  test('are served from the next window on, since the lost window was full', async () => {
    await fill();
    await loseEverything();
    await key.setTime(300);
    await r1.settle({ e: 3, c: 1 }, 700);
    expect(await r1.check(['x'])).toEqual(['denied']);
    await key.setTime(799);
    expect(await r2.settle({ d: 2 }, 201)).toMatchObject({ waiting: 3, granted: [] });
    await key.setTime(1000);
    expect((await r1.settle()).granted).toEqual(['c', 'd']);
    expect(await key.stored()).toMatchObject({
      state: { start: 1000, approved: 2 },
      requests: ['c', 'd'],
    });
  });

  test('hold the key also if they are put back when the hold is over', async () => {
    await fill();
    await loseEverything();
    await key.setTime(300);
    await r1.settle({ e: 3, c: 1 }, 700);
    await key.setTime(1200);
    // A third replica may be as late.
    expect(await r2.settle({ d: 2 }, 1)).toMatchObject({ waiting: 3, granted: [] });
    expect((await key.stored()).state).toMatchObject({ start: 1000, holdUntil: 1700 });
    await key.setTime(1700);
    expect((await r1.settle()).granted).toEqual(['c', 'd']);
  });

  test.each([
    [0, 500],
    [499, 500],
    [501, 501],
    [1000, 1000],
    [5000, 1000],
  ])(
    'of a replica that knows of %d ms to the end of the window wait for %d ms',
    async (known, millisToRoom) => {
      expect(await r1.settle({ c: 1 }, known)).toMatchObject({ millisToRoom, waiting: 1 });
      await key.setTime(millisToRoom - 1);
      expect((await r1.settle()).granted).toEqual([]);
      await key.setTime(millisToRoom);
      expect((await r1.settle()).granted).toEqual(['c']);
    },
  );

  describe('of a key that a newcomer has made again', () => {
    beforeEach(async () => {
      await fill();
      await loseEverything();
      await key.setTime(300);
      expect(await r2.check(['x'])).toEqual(['approved']);
      expect(await r1.settle({ e: 3, c: 1 }, 700)).toMatchObject({
        millisToRoom: 500,
        places: 2,
        granted: [],
      });
    });

    test('hold the key: nobody is approved while other replicas may still put waiters back', async () => {
      await key.setTime(799);
      expect(await r2.check(['y'])).toEqual(['denied']);
      expect(await r2.release('x')).toBe(true);
      expect((await r2.settle({ d: 2 })).granted).toEqual([]);
      expect(await key.stored()).toMatchObject({ state: { approved: 0 }, requests: [] });
    });

    test('are served in the order of their tickets when the hold ends, in the same window', async () => {
      await r2.settle({ d: 2 });
      await key.setTime(800);
      expect((await r2.settle()).granted).toEqual(['c']);
      expect(await key.stored()).toMatchObject({
        state: { start: 300, approved: 2, holdUntil: 'no' },
        requests: ['c', 'x'],
      });
      await key.setTime(1300);
      expect((await r2.settle()).granted).toEqual(['d', 'e']);
    });

    test('come before a newcomer whose check is the first after the hold', async () => {
      await key.setTime(800);
      expect(await r2.check(['y'])).toEqual(['denied']);
      expect((await key.stored()).requests).toEqual(['c', 'x']);
    });

    test('that are all withdrawn hold the key for the waiters of other replicas', async () => {
      await r1.withdraw(['c', 'e']);
      expect(await r2.check(['y'])).toEqual(['denied']);
      await key.setTime(800);
      expect(await r2.check(['z'])).toEqual(['approved']);
    });

    test('hold the key beyond the ends of shorter windows', async () => {
      const short = key.replica('r1', { limits: { windowMillis: 50 } });
      await key.setTime(1300);
      await loseEverything();
      await short.settle({ c: 1 }, 0);
      for (const now of [1350, 1400, 1799]) {
        await key.setTime(now);
        expect((await short.settle()).granted).toEqual([]);
      }
      await key.setTime(1800);
      expect((await short.settle()).granted).toEqual(['c']);
    });
  });

  test('of the other replicas are called by one message', async () => {
    await fill();
    await loseEverything();
    await r1.settle({ c: 1 }, 700);
    await r1.settle({ e: 3 }, 700);
    await r2.settle({ d: 2 }, 700);
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
  });

  test('of several replicas are in one order again', async () => {
    await fill();
    await loseEverything();
    await r2.check(['x', 'y']);
    expect((await r2.settle({ d: 2 })).granted).toEqual([]);
    expect((await r1.settle({ c: 1, e: 3 })).granted).toEqual([]);
    await endHold();
    expect(await key.stored()).toMatchObject({
      queue: [
        ['c@r1', 1],
        ['d@r2', 2],
        ['e@r1', 3],
      ],
      replicas: { r1: 5500, r2: 5000 },
    });
  });

  test('are before waiters that came after the loss', async () => {
    await fill();
    await loseEverything();
    await key.setTime(10);
    await r2.check(['x', 'y']);
    await r2.checkOrWait(['f']);
    await r1.settle({ c: 1 });
    await endHold(10);
    expect((await key.stored()).queue).toEqual([
      ['c@r1', 1],
      ['f@r2', 10_001],
    ]);
  });

  test('are put back if only the queue was lost', async () => {
    await fill();
    await redis.client.del(key.names.queue);
    await key.setTime(200);
    expect(await r1.settle()).toMatchObject({ millisToRoom: 800, waiting: 0, places: 0 });
    expect(await r1.settle({ c: 1, e: 3 })).toMatchObject({ places: 2, granted: [] });
    expect(await key.stored()).toMatchObject({
      state: { start: 0, approved: 2 },
      requests: ['a', 'b'],
      queue: [
        ['c@r1', 1],
        ['e@r1', 3],
      ],
    });
  });

  test('are put back into a full queue', async () => {
    await fill();
    await redis.client.hdel(key.names.waiting, 'c');
    await r2.checkOrWait(['f']);
    await r1.settle({ c: 1 });
    expect((await key.stored()).queue.map(([waiter]) => waiter).sort()).toEqual([
      'c@r1',
      'd@r2',
      'e@r1',
      'f@r2',
    ]);
    expect(await r2.checkOrWait(['g'])).toEqual(['queue full']);
  });

  test('keep their tickets from being given again', async () => {
    await key.setTime(500);
    await r1.check(['a', 'b']);
    await r1.checkOrWait(['c', 'd']);
    await loseEverything();
    await key.setTime(0);
    await r2.check(['x', 'y']);
    await r1.settle({ c: 500_001, d: 500_002 });
    expect(await r2.checkOrWait(['e'])).toEqual([500_003]);
  });

  test('of a replica that was taken for dead get their old places back', async () => {
    const long = { limits: { windowMillis: 60_000, maxRequests: 1 } };
    const slow = key.replica('slow', long);
    const living = key.replica('living', { ...long, history: { since: 0 } });
    await slow.check(['a']);
    await slow.checkOrWait(['c', 'd']);
    await key.setTime(6000);
    await living.checkOrWait(['e', 'f']);
    await living.release('a');
    expect(await key.stored()).toMatchObject({ requests: ['e'], queue: [['f@living', 6_000_001]] });
    expect(await slow.settle()).toMatchObject({ places: 0 });
    await slow.settle({ c: 1, d: 2 });
    await slow.settle();
    expect((await key.stored()).queue.map(([member]) => member)).toEqual([
      'c@slow',
      'd@slow',
      'f@living',
    ]);
  });
});
