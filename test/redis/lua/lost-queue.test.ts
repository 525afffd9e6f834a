import { type Overrides, TEST_KEPT_MILLIS, type Verdict } from '../../support/script-harness.js';
import { useKeyWithWaiters } from '../../support/use-key-with-waiters.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const { key, r1, r2, wakes } = useKeyWithWaiters(redis);

describe('a check whose ticket shows that Redis has lost a queue', () => {
  const known = { lowestTicket: 1, millisToWindowEnd: 700, limits: '1000:2:3' };
  const checkKnowing = (requestId: string, overrides?: Overrides): Promise<Verdict[]> =>
    r1.checkBatch([{ requestId, canWait: false }], overrides, known);

  beforeEach(async () => {
    await key.lose();
    await key.setTime(300);
  });

  test('restores the full window, calls for the other waiters, and overtakes nobody', async () => {
    expect(await checkKnowing('x')).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { start: 0, approved: 2, born: 300, holdUntil: 800 },
    });
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    await key.setTime(1000);
    expect(await r1.check(['y'])).toEqual(['approved']);
  });

  test('restores a full window for a millisecond if it may have ended', async () => {
    const ended = { ...known, millisToWindowEnd: 0 };
    await r1.checkBatch([{ requestId: 'x', canWait: false }], {}, ended);
    expect(await key.stored()).toMatchObject({ state: { start: 301 - 1000, approved: 2 } });
  });

  test('restores the full window with the maximum of its override', async () => {
    expect(await checkKnowing('x', { maxRequests: 5 })).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({ state: { approved: 2, max: 5, holdUntil: 800 } });
  });

  test('begins a recovery of a key that a newcomer has made again, once', async () => {
    expect(await r2.check(['x'])).toEqual(['approved']);
    expect(await checkKnowing('u')).toEqual(['denied']);
    expect(await r2.check(['y'])).toEqual(['denied']);
    await r1.settle({ c: 1 });
    await key.setTime(799);
    await checkKnowing('v');
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    await key.setTime(800);
    expect(await checkKnowing('w')).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { holdUntil: 'no' },
      requests: ['c', 'x'],
    });
  });

  test('begins a recovery also of a key that is no longer new', async () => {
    await r2.check(['x']);
    await key.setTime(1500);
    expect(await checkKnowing('u')).toEqual(['denied']);
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    expect(await r2.check(['y'])).toEqual(['denied']);
    await r1.settle({ c: 1 });
    await key.setTime(2000);
    expect((await r1.settle()).granted).toEqual(['c']);
  });

  test('does nothing if the ticket belongs to this key', async () => {
    await r1.check(['a', 'b']);
    const [lowestTicket] = (await r1.checkOrWait(['c'])) as number[];
    await key.setTime(400);
    const check = { requestId: 'd', canWait: false };
    const own = { ...known, lowestTicket: lowestTicket! };
    expect(await r1.checkBatch([check], {}, own)).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({ state: { born: 300, holdUntil: 'no' } });
  });
});

test('the rest of a key whose state was lost counts no approvals, and serves its waiters first', async () => {
  await key.lose('state');
  await key.setTime(300);
  expect(await r1.check(['x', 'y'])).toEqual(['denied', 'denied']);
  expect(await key.stored()).toMatchObject({
    state: { start: 300, approved: 2, denied: 2, ticket: 300_000, born: 300, served: 300 },
    requests: ['c', 'd'],
    queue: [['e@r1', 3]],
  });
});

describe('lost waiters', () => {
  test('are put back in the order of their tickets, whatever the order of the call', async () => {
    await key.lose();
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
      unclaimed: 0,
      putBack: ['c', 'd', 'e'],
      granted: [],
      ended: [],
      holdsLeft: new Map(),
    });
    const keptUntil = 300 + TEST_KEPT_MILLIS;
    const stored = await key.stored();
    expect(stored).toMatchObject({
      state: { start: 0, approved: 2, ticket: 300_000, born: 300, limitsSince: 0, holdUntil: 800 },
      requests: [],
      queue: [
        ['c@r1', 1],
        ['d@r1', 2],
        ['e@r1', 3],
      ],
      replicas: { r1: 5300 },
    });
    const { state, queue, waiting, replicas, ...others } = stored.expiry;
    expect([state, queue, waiting, replicas]).toEqual(Array(4).fill(keptUntil));
    expect(others).toEqual({});
  });

  test('hold the key also if they are put back when the recovery is over', async () => {
    await key.lose();
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
      await key.lose();
      expect(await r1.settle({ c: 1 }, known)).toMatchObject({ millisToRoom, waiting: 1 });
      await key.setTime(millisToRoom - 1);
      expect((await r1.settle()).granted).toEqual([]);
      await key.setTime(millisToRoom);
      expect((await r1.settle()).granted).toEqual(['c']);
    },
  );

  describe('of a key that a newcomer has made again', () => {
    beforeEach(async () => {
      await key.lose();
      await key.setTime(300);
      expect(await r2.check(['x'])).toEqual(['approved']);
      expect(await r1.settle({ e: 3, c: 1 }, 700)).toMatchObject({
        millisToRoom: 500,
        places: 2,
        granted: [],
      });
    });

    test('hold the key while other replicas may still put waiters back', async () => {
      await key.setTime(799);
      expect(await r2.check(['y'])).toEqual(['denied']);
      expect(await r2.release('x')).toBe(true);
      expect((await r2.settle({ d: 2 })).granted).toEqual([]);
      expect(await key.stored()).toMatchObject({ state: { approved: 0 }, requests: [] });
    });

    test('are served in the order of their tickets when the recovery ends, before a newcomer', async () => {
      await r2.settle({ d: 2 });
      await key.setTime(800);
      expect(await r2.check(['y'])).toEqual(['denied']);
      expect(await key.stored()).toMatchObject({
        state: { start: 300, approved: 2, holdUntil: 'no' },
        requests: ['c', 'x'],
      });
      await key.setTime(1300);
      expect((await r2.settle()).granted).toEqual(['d', 'e']);
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
      await key.lose();
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
    await key.lose();
    await r1.settle({ c: 1 }, 700);
    await r1.settle({ e: 3 }, 700);
    await r2.settle({ d: 2 }, 700);
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
  });

  test('of several replicas are in one order again, before waiters that came after the loss', async () => {
    await key.lose();
    await key.setTime(10);
    await r2.check(['x', 'y']);
    await r2.checkOrWait(['f']);
    expect((await r2.settle({ d: 2 })).granted).toEqual([]);
    expect((await r1.settle({ c: 1, e: 3 })).granted).toEqual([]);
    await key.setTime(510);
    await r1.settle();
    expect(await key.stored()).toMatchObject({
      queue: [
        ['c@r1', 1],
        ['d@r2', 2],
        ['e@r1', 3],
        ['f@r2', 10_001],
      ],
      replicas: { r1: 5510, r2: 5010 },
    });
  });

  test('are put back into a full queue', async () => {
    await redis.client.hdel(key.names.waiting, 'c');
    await r2.checkOrWait(['f']);
    await r1.settle({ c: 1 });
    expect((await key.queued()).sort()).toEqual(['c@r1', 'd@r2', 'e@r1', 'f@r2']);
    expect(await r2.checkOrWait(['g'])).toEqual(['queue full']);
  });

  test('keep their tickets from being given again', async () => {
    await key.lose();
    await r2.check(['x', 'y']);
    await r1.settle({ c: 500_001, d: 500_002 });
    expect(await r2.checkOrWait(['f'])).toEqual([500_003]);
  });

  test('of a replica that was taken for dead get their old places back', async () => {
    const long = { limits: { windowMillis: 60_000, maxRequests: 1 } };
    await key.begin();
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
    expect(await key.queued()).toEqual(['c@slow', 'd@slow', 'f@living']);
  });
});
