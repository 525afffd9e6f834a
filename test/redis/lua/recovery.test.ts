import {
  TEST_KEPT_MILLIS,
  TEST_LEASE_MILLIS,
  type TestReplica,
  useScriptHarness,
} from '../../support/script-harness.js';
import { useKeyWithWaiters } from '../../support/use-key-with-waiters.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);
const key = useScriptHarness(redis);

describe('a lost queue', () => {
  const { key, r1, r2, wakes } = useKeyWithWaiters(redis);

  test('is shown by the ticket of a check, which restores the full window and overtakes nobody', async () => {
    await key.lose();
    await key.setTime(300);
    const known = { lowestTicket: 1, millisToWindowEnd: 700, limits: '1000:2:3' };
    const check = { requestId: 'x', canWait: false };
    expect(await r1.checkBatch([check], undefined, known)).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { start: 0, approved: 2, born: 300, recoveryUntil: 800 },
    });
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    await key.setTime(1000);
    expect(await r1.check(['y'])).toEqual(['approved']);
  });

  test('is shown by a ticket also if a newcomer has made the key again some time ago', async () => {
    await key.lose();
    await key.setTime(300);
    await r2.check(['x']);
    await key.setTime(1500);
    const known = { lowestTicket: 1, millisToWindowEnd: 700, limits: '1000:2:3' };
    const check = { requestId: 'u', canWait: false };
    expect(await r1.checkBatch([check], undefined, known)).toEqual(['denied']);
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    expect(await r2.check(['y'])).toEqual(['denied']);
    await r1.settle({ c: 1 });
    await key.setTime(2000);
    expect((await r1.settle()).granted).toEqual(['c']);
  });

  test('is shown by a ticket also if its request was approved again elsewhere, before a recovery', async () => {
    await key.lose();
    await key.setTime(300);
    expect(await r2.check(['c'])).toEqual(['approved']);
    const known = { lowestTicket: 1, requestId: 'c', millisToWindowEnd: 700, limits: '1000:2:3' };
    const check = { requestId: 'u', canWait: false };
    expect(await r1.checkBatch([check], undefined, known)).toEqual(['denied']);
    expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
  });

  test('is noted in the state also by a call that serves nobody', async () => {
    await key.lose('queue');
    expect(await r1.amend('a', 2)).toBe(true);
    expect(await key.stored()).toMatchObject({ state: { recoveryUntil: 500 } });
  });

  describe('lost waiters', () => {
    test('are put back in the order of their tickets, whatever the order of the call', async () => {
      await key.lose();
      await key.setTime(300);
      expect(await r1.settle({ e: 3, d: 2, c: 1 }, 700)).toEqual({
        millisToRoom: 700,
        millisToSettle: 300,
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
        state: {
          start: 0,
          approved: 2,
          ticket: 300_000,
          born: 300,
          limitsSince: 0,
          recoveryUntil: 800,
        },
        requests: [],
        queue: [
          ['c@r1', 1],
          ['d@r1', 2],
          ['e@r1', 3],
        ],
        replicas: { r1: 5300 },
      });
      const { state, queue, records, replicas, ...others } = stored.expiry;
      expect([state, queue, records, replicas]).toEqual(Array(4).fill(keptUntil));
      expect(others).toEqual({});
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

    test('of a bucket find one hit when the replica knew that there is room', async () => {
      const limits = {
        algorithm: { name: 'token_bucket', burst: 2 },
        maxRequestsInQueue: 5,
      } as const;
      const replica = key.replica('r1', { limits });
      await key.lose();
      await replica.settle({ c: 1, d: 2 }, 700);
      await key.setTime(699);
      expect((await replica.settle()).granted).toEqual([]);
      await key.setTime(700);
      expect((await replica.settle()).granted).toEqual(['c']);
    });

    test('of the other replicas are called by one message', async () => {
      await key.lose();
      await r1.settle({ c: 1 }, 700);
      await r1.settle({ e: 3 }, 700);
      await r2.settle({ d: 2 }, 700);
      expect(await wakes.take()).toEqual(['{"memoryLost":true}']);
    });

    test('keep their tickets from being given again', async () => {
      await key.lose();
      await r2.check(['x', 'y']);
      await r1.settle({ c: 500_001, d: 500_002 });
      expect(await r2.checkOrWait(['f'])).toEqual([500_003]);
    });
  });
});

describe('names that were removed alone', () => {
  const replica = key.replica('r1', { limits: { maxRequests: 1 } });
  /** The ticket of b, which waits for a's approval to end. */
  let ticket: number;
  beforeEach(async () => {
    expect(await replica.check(['a'])).toEqual(['approved']);
    ticket = (await replica.checkOrWait(['b']))[0] as number;
  });

  test('a queue that loses its list in a hold calls for its waiters again, and holds for them', async () => {
    const wakes = await recordWakes(key.names.wakeChannel);
    await key.lose('queue');
    await key.setTime(10);
    await replica.settle();
    await key.setTime(400);
    await replica.settle({ b: ticket });
    await key.lose('queue');
    await key.setTime(500);
    await replica.settle();
    expect((await wakes.take()).filter((text) => text.includes('memoryLost'))).toHaveLength(2);
    expect((await key.stored()).state).toMatchObject({ recoveryUntil: 1000 });
  });

  test('a waiter of whose queue only the records are left is put back, also after others have joined', async () => {
    await key.lose('queue', 'replicas');
    const [c] = await replica.checkOrWait(['c']);
    const settled = await replica.settle({ b: ticket, c: c as number });
    expect(settled).toMatchObject({ putBack: ['b'], places: 2 });
  });
});

test('a waiter of whose queue only the record is left is put back, also where other records were lost before', async () => {
  const replica = key.replica('r1', { limits: { maxRequests: 1 } });
  expect(await replica.checkBatch([{ requestId: 'a', number: 1, canWait: false }])).toEqual([
    'approved',
  ]);
  await key.lose('records');
  const [b] = await replica.checkOrWait(['b']);
  await key.lose('queue', 'replicas');
  const [c] = await replica.checkOrWait(['c']);
  const settled = await replica.settle({ b: b as number, c: c as number });
  expect(settled).toMatchObject({ putBack: ['b'], places: 2 });
});

describe('replicas that fall silent', () => {
  const LIMITS = { windowMillis: 6000, maxRequests: 1 };
  /** A replica is silent after more than three fifths of its lease. */
  const SILENT = TEST_LEASE_MILLIS * 0.6 + 1;

  /** A replica with the only waiters of the key, b and c. */
  async function waitAt0(): Promise<TestReplica> {
    const silent = key.replica('silent', { limits: LIMITS });
    await silent.check(['a']);
    await silent.checkOrWait(['b', 'c']);
    return silent;
  }

  const other = (history: { since?: number; until?: number }): TestReplica =>
    key.replica('other', { limits: LIMITS, history });

  test.each([
    ['that Redis was up all the time', { since: -10 }],
    ['that Redis was up for a whole lease', { since: 1000 }],
  ])(
    'a replica whose lease ran out is dead, and the key is not held, if the caller knows %s',
    async (_what, history) => {
      await waitAt0();
      await key.setTime(6000);
      expect(await other(history).check(['x'])).toEqual(['approved']);
      expect((await key.stored()).state).toMatchObject({ recoveryUntil: 'no' });
    },
  );

  test.each([
    ['the caller knows nothing', {}],
    ['Redis has just come back to the caller', { since: 5990 }],
    ['Redis last answered the caller before the others fell silent', { since: -10, until: 3000 }],
  ])('the key is held for replicas that may come back if %s', async (_what, history) => {
    const silent = await waitAt0();
    await key.setTime(6000);
    expect(await other(history).check(['x'])).toEqual(['denied']);
    expect((await silent.settle()).granted).toEqual([]);
    await key.setTime(6500);
    expect((await silent.settle()).granted).toEqual(['b']);
  });

  test('a release in a hold wakes replicas that asked before the hold with the time of room', async () => {
    const silent = await waitAt0();
    await key.setTime(SILENT);
    expect(await silent.settle()).toMatchObject({ millisToRoom: 6000 - SILENT });
    expect((await key.stored()).state).toMatchObject({ recoveryUntil: SILENT + 500 });
    await key.setTime(SILENT + 100);
    const wakes = await recordWakes(key.names.wakeChannel);
    expect(await other({ since: SILENT }).release('a')).toBe(true);
    expect(await wakes.read()).toMatchObject([{ millisToRoom: 400, waiting: 2, granted: [] }]);
    await key.setTime(SILENT + 500);
    expect((await silent.settle()).granted).toEqual(['b']);
  });

  test('a hold takes no longer if the clock goes back', async () => {
    const silent = await waitAt0();
    await key.setTime(6000);
    expect((await silent.settle()).granted).toEqual([]);
    await key.setTime(2000);
    expect((await silent.settle()).granted).toEqual([]);
    await key.setTime(2500);
    await silent.settle();
    expect((await key.stored()).state).toMatchObject({ recoveryUntil: 'no' });
  });

  describe('a hold in which no call came begins again, since Redis may have been down', () => {
    const BEGUN = 6000;
    const recoveryUntil = async (): Promise<unknown> => (await key.stored()).state!.recoveryUntil;

    /** Leases of two replicas with waiters ran out while Redis was down. One of them is back. */
    async function comeBack(): Promise<{ silent: TestReplica; back: TestReplica }> {
      const silent = await waitAt0();
      await other({ since: 0 }).checkOrWait(['d']);
      await key.setTime(BEGUN);
      const back = other({ since: BEGUN });
      expect(await back.settle()).toMatchObject({ granted: [], millisToRoom: 500 });
      return { silent, back };
    }

    test.each([
      ['last answered the caller when it began', { since: BEGUN, until: BEGUN + 3 }],
      ['answers the caller again', { since: BEGUN }],
      ['has answered the caller for less than a lease', { since: BEGUN - TEST_LEASE_MILLIS + 1 }],
      ['may never have answered the caller', {}],
    ])('if Redis %s', async (_what, history) => {
      const { silent, back } = await comeBack();
      await key.setTimeInSilence(BEGUN + 984);
      expect(await other(history).settle()).toMatchObject({ granted: [], millisToRoom: 500 });
      await key.setTimeInSilence(BEGUN + 1000);
      await silent.settle();
      await key.setTimeInSilence(BEGUN + 1284);
      await back.settle();
      await key.setTimeInSilence(BEGUN + 1484);
      expect((await back.settle()).granted).toEqual(['b']);
    });

    test.each([
      ['calls of others show that Redis is up', [200, 600]],
      ['its replicas call before its end', [300, 600]],
      ['its replicas call as late as they may', [400, 800]],
    ])('but not if %s', async (_what, [first, second]) => {
      const { back } = await comeBack();
      await key.setTimeInSilence(BEGUN + first!);
      await key.replica('third', { limits: LIMITS }).withdraw(['nobody']);
      expect(await recoveryUntil()).toBe(BEGUN + 500);
      await key.setTimeInSilence(BEGUN + second!);
      expect((await back.settle()).granted).toEqual(['d']);
    });

    test('but not for a caller that knows that Redis was up for a lease in it', async () => {
      await comeBack();
      const later = BEGUN + TEST_LEASE_MILLIS;
      await key.setTimeInSilence(later);
      expect(await other({ since: BEGUN + 10 }).check(['x'])).toEqual(['denied']);
      expect(await recoveryUntil()).toBe(later + 500);
      await key.setTimeInSilence(later + TEST_LEASE_MILLIS);
      expect(await other({ since: BEGUN + 10 }).check(['y'])).toEqual(['approved']);
    });

    test('three times at most, so that rare callers who know nothing are not denied for ever', async () => {
      await comeBack();
      const rare = key.replica('rare', { limits: LIMITS });
      const verdicts: unknown[] = [];
      for (let call = 1; call <= 5; call += 1) {
        await key.setTimeInSilence(BEGUN + call * 10_000);
        verdicts.push(...(await rare.check([`x${call}`])));
      }
      expect(verdicts).toEqual(['denied', 'denied', 'denied', 'approved', 'approved']);
    });
  });

  describe('a settle in a hold says when the next is due', () => {
    test('in the middle of the hold, and then when there may be room', async () => {
      const silent = await waitAt0();
      await key.setTime(6000);
      expect(await silent.settle()).toMatchObject({ millisToRoom: 500, millisToSettle: 300 });
      await key.setTime(6250);
      expect(await silent.settle()).toMatchObject({ millisToRoom: 250, millisToSettle: 50 });
      await key.setTime(6300);
      expect(await silent.settle()).toMatchObject({ millisToRoom: 200, millisToSettle: undefined });
    });
  });
});
