import type { QueueList } from '../../../src/limiter/queue-order.js';
import { TEST_LEASE_MILLIS, type Verdict, useScriptHarness } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { type WakeRecorder, useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);
const key = useScriptHarness(redis);

let wakes: WakeRecorder;
beforeEach(async () => {
  wakes = await recordWakes(key.names.wakeChannel);
});

/** The claims that the wakes since the last call have told of. */
async function told(): Promise<{ granted: string[]; ended: string[] }> {
  const all = (await wakes.take()).map((text) => JSON.parse(text) as Record<string, string[]>);
  return {
    granted: all.flatMap(({ granted = [] }) => granted),
    ended: all.flatMap(({ ended = [] }) => ended),
  };
}

describe('requests with chosen ids', () => {
  const r1 = key.replica('r1');
  const r2 = key.replica('r2');
  /** A check whose caller has chosen its id. @param number of the check on its replica */
  async function check(
    replica: typeof r1,
    requestId: string,
    number: number,
    terms: {
      readonly canWait?: boolean;
      readonly hits?: number;
      readonly holdMillis?: number;
    } = {},
  ): Promise<Verdict | undefined> {
    const [verdict] = await replica.checkBatch([{ requestId, number, canWait: true, ...terms }]);
    return verdict;
  }

  /** The records of the requests whose callers have chosen their ids. */
  async function records(): Promise<Record<string, string>> {
    const all = Object.entries(await key.storedRecords());
    return Object.fromEntries(
      all.flatMap(([id, { state, owner }]) => (owner ? [[id, `${state} ${owner}`]] : [])),
    );
  }

  async function fill(): Promise<void> {
    await r1.check(['f1', 'f2']);
  }

  test('requests with ids of Sluice have no records', async () => {
    await fill();
    await r1.checkOrWait(['a']);
    expect(await records()).toEqual({});
    expect(await key.optionalFields()).not.toHaveProperty('named');
  });

  describe('a check with the id of a request that waits', () => {
    let ticket: Verdict | undefined;
    beforeEach(async () => {
      await fill();
      ticket = await check(r1, 'a', 1);
      await r1.checkOrWait(['b']);
      await wakes.take();
    });

    test('takes its place over, which then is its replica’s', async () => {
      await key.setTime(10);
      expect(await check(r2, 'a', 7)).toBe(ticket);
      expect(await records()).toEqual({ a: 'waiting r2#7' });
      expect(await told()).toEqual({ granted: [], ended: ['a#r1#1!taken_over'] });
      const { places } = await r2.settle({ 'a#7': ticket as number });
      expect(places).toBe(1);
      expect((await r1.settle()).places).toBe(1);
    });

    test('is told of its turn, in its order, and the earlier check is not', async () => {
      await check(r2, 'a', 7);
      await wakes.take();
      await r1.release('f1');
      expect(await told()).toEqual({ granted: ['a#r2#7'], ended: [] });
      expect(await records()).toEqual({ a: 'approved r2#7' });
      const asked = { 'a#1': ticket as number };
      expect(await r1.settle(asked)).toMatchObject({
        granted: [],
        ended: [{ claim: 'a#1', why: 'taken_over' }],
      });
      expect(await r2.settle({ 'a#7': ticket as number })).toMatchObject({ granted: ['a#7'] });
    });

    test('that is sent again takes no other place, and ends no wait', async () => {
      await check(key.replica('r1', { guard: sentAgain }), 'a', 1);
      expect(await told()).toEqual({ granted: [], ended: [] });
      expect((await r1.settle()).places).toBe(2);
    });

    test('ends its wait if it can not wait', async () => {
      expect(await check(r2, 'a', 7, { canWait: false })).toBe('wait expired');
      expect(await told()).toEqual({ granted: [], ended: ['a#r1#1!taken_over'] });
      expect(await key.queued()).toEqual(['b@r1']);
      expect(await records()).toEqual({});
    });
  });

  test('a waiter of a dead replica has no record when its key was idle', async () => {
    await fill();
    await check(r1, 'a', 1);
    await key.setTime(TEST_LEASE_MILLIS + 1);
    const history = { since: 0, until: TEST_LEASE_MILLIS + 1 };
    await key.replica('r2', { history }).check(['b']);
    expect(await records()).toEqual({});
  });

  describe('a request that a release has withdrawn', () => {
    let ticket: number;
    beforeEach(async () => {
      await fill();
      ticket = (await check(r1, 'a', 1)) as number;
      await wakes.take();
      expect(await r2.release('a')).toBe(true);
    });

    test('ends the wait of its check', async () => {
      expect(await told()).toEqual({ granted: [], ended: ['a#r1#1!withdrawn'] });
      expect(await key.queued()).toEqual([]);
      expect(await r1.settle({ 'a#1': ticket })).toMatchObject({
        granted: [],
        putBack: [],
        ended: [{ claim: 'a#1', why: 'withdrawn' }],
      });
    });
  });

  describe('a check with the id of a request that is approved', () => {
    beforeEach(() => check(r1, 'a', 1));

    test('gives it back if its call was only sent again', async () => {
      await check(r1, 'a', 1);
      await r1.withdraw(['a#1']);
      expect(await key.counted()).toEqual({ approved: 0, held: 0 });
      expect(await records()).toEqual({});
    });

    test('gets it in the three windows after its own, and then another one', async () => {
      const replica = key.replica('r1', { leaseMillis: 1000 });
      await replica.check(['of window 0']);
      for (const window of [1, 2, 3]) {
        await key.setTime(window * 1000);
        await replica.check([`of window ${window}`]);
        expect(await records()).toEqual({ a: 'approved r1#1' });
      }
      expect(await check(replica, 'a', 2)).toBe('approved');
      expect(await key.counted()).toEqual({ approved: 1, held: 0 });
      // The answer was a change of the record, which is remembered for two of the longer leases.
      for (const window of [4, 5, 6, 7, 8, 9, 10]) {
        await key.setTime(window * 1000);
        expect(await records()).toEqual({ a: 'approved r1#0' });
        await replica.check([`of window ${window}`]);
      }
      expect(await records()).toEqual({});
      expect(await key.optionalFields()).not.toHaveProperty('named');
      expect(await check(replica, 'a', 3)).toBe('approved');
      expect(await key.counted()).toEqual({ approved: 2, held: 0 });
    });
  });

  test('a lapsed request is remembered as such for as long, and unknown then', async () => {
    const replica = key.replica('r1', { leaseMillis: 1000 });
    await check(replica, 'a', 1, { holdMillis: 500 });
    for (let millis = 500; millis < 8000; millis += 1000) {
      await key.setTime(millis);
      await replica.check([`at ${millis}`]);
      if (millis < 3000) expect(await records()).toEqual({ a: 'lapsed r1#1' });
    }
    expect(await records()).toEqual({});
  });

  test('a place that is put back after a loss has its owner again', async () => {
    await fill();
    const ticket = (await check(r1, 'a', 1)) as number;
    await key.lose();
    expect(await r1.settle({ 'a#1': ticket }, 500)).toMatchObject({ putBack: ['a#1'] });
    expect(await records()).toEqual({ a: 'waiting r1#1' });
    expect(await check(r2, 'a', 7)).toBe(ticket);
  });
});

const lane = (name: string): QueueList => ({ kind: 'lane', name, headStartMillis: 0 });

describe('kept places', () => {
  const KEEP_MILLIS = 3000;
  /** As what the places count, rounded up. */
  const KEPT = '+5000';
  const limits = { windowMillis: 60_000 };
  /** Redis was up all the time, as these replicas know. */
  const history = { since: 0 };
  const r1 = key.replica('r1', { limits, history });
  const r2 = key.replica('r2', { limits, history });
  type Replica = typeof r1;
  type Terms = Partial<Parameters<Replica['checkBatch']>[0][number]>;

  /** A check whose place is kept. @param number of the check on its replica */
  async function check(
    replica: Replica,
    requestId: string,
    number: number,
    terms: Terms = {},
  ): Promise<Verdict> {
    const [verdict] = await replica.checkBatch([
      { requestId, number, canWait: true, keepMillis: KEEP_MILLIS, ...terms },
    ]);
    return verdict!;
  }

  /** By their ids, until when leases run, in ms after the start. */
  async function leases(): Promise<Readonly<Record<string, number>>> {
    return (await key.stored()).replicas;
  }

  async function fill(): Promise<void> {
    await r1.check(['f1', 'f2']);
  }

  describe('a kept place', () => {
    beforeEach(fill);

    test('counts apart from the other places of its replica', async () => {
      await r1.checkOrWait(['a']);
      await check(r1, 'b', 1);
      expect(await key.queued()).toEqual(['a@r1', `b@r1${KEPT}`]);
      expect(await leases()).toEqual({
        r1: TEST_LEASE_MILLIS,
        [`r1${KEPT}`]: TEST_LEASE_MILLIS + 5000,
      });
      expect((await key.storedRecords()).b).toMatchObject({ keepMillis: 3000, owner: 'r1#1' });
      expect((await r1.settle()).places).toBe(2);
    });

    test('stays with the check that has it if the call of an earlier one is sent again', async () => {
      await check(r1, 'a', 1);
      const ticket = await check(r2, 'a', 1);
      const again = key.replica('r1', { limits, guard: sentAgain });
      expect(await check(again, 'a', 1)).toBe('taken over');
      expect(await key.queued()).toEqual([`a@r2${KEPT}`]);
      await r1.release('f1');
      expect(await check(again, 'a', 1)).toBe('taken over');
      expect(await check(r2, 'a', 2)).toBe('approved');
      expect(ticket).toEqual(expect.any(Number));
    });

    test.each([
      ['a check', () => check(r1, 'b', 2)],
      ['a settle', () => r1.settle()],
      ['a renewal', () => r1.renew(1, { keepsAny: true })],
    ])('has its lease renewed by %s', async (_what, renew) => {
      await check(r1, 'a', 1);
      await key.setTime(1000);
      await renew();
      expect(await leases()).toEqual({ [`r1${KEPT}`]: 1000 + TEST_LEASE_MILLIS + 5000 });
    });

    test('stays in Redis as long as it may count', async () => {
      await check(r1, 'a', 1, { keepMillis: 600_000 });
      const { queue } = await key.expiry();
      expect(queue).toBeGreaterThan(TEST_LEASE_MILLIS + 1_000_000);
    });

    test('is taken over with its ticket, and counts for the other replica', async () => {
      const ticket = await check(r1, 'a', 1);
      expect(await check(r2, 'a', 7, { keepMillis: 1000 })).toBe(ticket);
      expect(await key.queued()).toEqual(['a@r2+1000']);
      expect(await leases()).toEqual({ 'r2+1000': TEST_LEASE_MILLIS + 1000 });
      expect(await told()).toEqual({ granted: [], ended: ['a#r1#1!taken_over'] });
    });

    test('is put back as it was after Redis has lost it', async () => {
      const ticket = (await check(r1, 'a', 1)) as number;
      await key.lose();
      await r1.settle({ 'a#1': ticket }, 0, '', { 'a#1': { keepMillis: KEEP_MILLIS } });
      expect(await key.queued()).toEqual([`a@r1${KEPT}`]);
      expect((await key.storedRecords()).a).toMatchObject({ keepMillis: 3000, owner: 'r1#1' });
    });

    test('is the older one again where a check has brought its request back before its replica did', async () => {
      const ticket = (await check(r1, 'a', 1, { list: lane('first') })) as number;
      const other = (await check(r2, 'x', 1, { list: lane('first') })) as number;
      await key.lose();
      await redis.client.del(key.names.headsOf('lane'));
      await key.setTime(10);
      const terms = { keepMillis: KEEP_MILLIS, list: lane('first') };
      await r2.settle({ 'x#1': other }, 500, '', { 'x#1': terms });
      await check(r2, 'a', 7, { list: lane('second') });
      expect(await key.queued()).toEqual([`x@r2${KEPT}`, `a@r2${KEPT}`]);
      const { ended, places } = await r1.settle({ 'a#1': ticket }, 500, '', { 'a#1': terms });
      expect([ended, places]).toEqual([[{ claim: 'a#1', why: 'taken_over' }], 0]);
      expect(await key.queued()).toEqual([`a@r2${KEPT}`, `x@r2${KEPT}`]);
      expect(Object.keys(await leases())).toEqual([`r2${KEPT}`]);
      expect((await key.storedRecords()).a).toMatchObject({
        list: { name: 'first' },
        keepMillis: 3000,
        owner: 'r2#7',
      });
    });

    test('tells the check that takes it over in which list it is', async () => {
      const listOf = async (number: number, list: QueueList): Promise<unknown> => {
        const again = { requestId: 'a', number, canWait: true, keepMillis: KEEP_MILLIS, list };
        return (await r2.checkReply([again])).listsOfPlaces?.get(0);
      };
      await check(r1, 'a', 1, { list: lane('first') });
      expect(await listOf(2, lane('second'))).toEqual(lane('first'));
      const group = { kind: 'group', name: 'g=1\n', weight: 3, maxRequests: undefined } as const;
      await check(r1, 'b', 3, { list: group });
      const again = { requestId: 'b', number: 4, canWait: true, keepMillis: KEEP_MILLIS };
      const { listsOfPlaces } = await r2.checkReply([{ requestId: 'c', canWait: false }, again]);
      expect([...listsOfPlaces!]).toEqual([[1, group]]);
    });

    test('has no turn after its longest wait if its replica is gone, and is unknown then', async () => {
      // After a release, another one may come before the window ends.
      await r1.release('f2');
      await r1.check(['f3']);
      await check(r1, 'a', 1, { keepMillis: 600_000, maxWaitMillis: TEST_LEASE_MILLIS });
      await r2.checkOrWait(['b']);
      await key.setTime(TEST_LEASE_MILLIS - 1);
      await r2.settle();
      expect(await r2.status('a')).toMatchObject({ status: 'waiting' });
      await key.setTime(TEST_LEASE_MILLIS);
      expect(await r2.status('a')).toBeUndefined();
      await wakes.take();
      await r2.release('f1');
      expect(await told()).toEqual({ granted: ['b'], ended: [] });
    });

    test('is shown as a place of its replica', async () => {
      await r1.checkOrWait(['a']);
      await check(r1, 'b', 1);
      const examined = await r2.examine();
      expect(examined?.queue.map(({ replica }) => replica)).toEqual(['r1', 'r1']);
      expect(examined?.replicas).toEqual([
        { replica: 'r1', places: 2, leaseMillis: TEST_LEASE_MILLIS + 5000 },
      ]);
    });
  });

  describe('the approval of a kept place', () => {
    beforeEach(fill);

    async function grant(terms: Terms = {}): Promise<number> {
      const ticket = (await check(r1, 'a', 1, terms)) as number;
      await r2.checkOrWait(['n']);
      await r1.release('f1');
      return ticket;
    }

    test('is held for its time, and the queue goes on after it', async () => {
      await grant();
      expect(await key.storedHolds()).toEqual({ a: '3000:3000' });
      expect(await key.counted()).toEqual({ approved: 2, held: 1 });
      expect(await key.storedRecords()).toMatchObject({
        a: { state: 'unclaimed', keepMillis: 3000, owner: 'r1#1' },
      });
      expect(await key.queued()).toEqual(['n@r2']);
    });

    test('is confirmed once if the call is sent again', async () => {
      await grant();
      await r1.confirm(['a#1']);
      const before = await key.stored();
      expect(await key.replica('r1', { limits, guard: sentAgain }).confirm(['a#1'])).toEqual([
        true,
      ]);
      expect((await key.stored()).state).toEqual(before.state);
    });

    test.each([
      ['a check', async () => typeof (await check(r2, 'a', 2)) === 'number'],
      ['a confirmation', async () => (await r1.confirm(['a#1']))[0] === false],
    ])('is not claimed by %s once Redis has lost the state', async (_what, isRefused) => {
      await grant();
      await redis.client.del(key.names.state);
      await r2.check(['g1', 'g2']);
      expect(await isRefused()).toBe(true);
      expect(await key.counted()).toMatchObject({ approved: 2 });
    });

    test('lapses without a confirmation: the next one is served, and the id is unknown', async () => {
      await grant();
      await wakes.take();
      await key.setTime(3000);
      await r2.settle();
      expect(await told()).toMatchObject({ granted: ['n'] });
      expect(key.takeUnclaimed()).toBe(1);
      expect(await key.storedRecords()).toEqual({});
      expect(await r1.confirm(['a#1'])).toEqual([false]);
      expect(await check(r1, 'a', 2)).toEqual(expect.any(Number));
    });

    test.each([
      ['a check', () => r2.check(['x'])],
      ['a check for another window', () => r2.checkOrWait(['x'])],
    ])('that has lapsed is told of by %s, once', async (_what, call) => {
      await grant();
      await key.setTime(3000);
      await r2.release('unknown');
      expect(key.takeUnclaimed()).toBe(0);
      await call();
      await call();
      expect(key.takeUnclaimed()).toBe(1);
    });

    test('is claimed by a later check on any replica, and the earlier one learns of it', async () => {
      await grant();
      await wakes.take();
      expect(await check(r2, 'a', 7)).toBe('approved');
      expect(await told()).toEqual({ granted: [], ended: ['a#r1#1!taken_over'] });
      expect(await key.counted()).toEqual({ approved: 2, held: 0 });
      expect(await r1.confirm(['a#1'])).toEqual([false]);
      await r1.withdraw(['a#1']);
      expect(await key.counted()).toEqual({ approved: 2, held: 0 });
      expect(await check(r1, 'a', 8, { canWait: false, keepMillis: undefined })).toBe('approved');
    });

    test('is claimed by a settle for a later check of its replica that keeps no place', async () => {
      const ticket = await grant({ holdMillis: 500 });
      const { granted, holdsLeft } = await r1.settle({ 'a#2': ticket }, 500, '', { 'a#2': {} });
      expect(granted).toEqual(['a#2']);
      expect([...holdsLeft]).toEqual([['a#2', 500]]);
      expect(await key.storedRecords()).toMatchObject({ a: { state: 'held', owner: 'r1#2' } });
    });

    test('is given back by its replica when nobody has come for it', async () => {
      await grant();
      await wakes.take();
      await r1.withdraw(['a#1']);
      expect(await told()).toMatchObject({ granted: ['n'] });
      expect(key.takeUnclaimed()).toBe(1);
      expect(await key.counted()).toEqual({ approved: 2, held: 0 });
    });

    test('is given back by a release, which is not counted as unclaimed', async () => {
      await grant();
      await wakes.take();
      expect(await r2.release('a')).toBe(true);
      expect(await told()).toEqual({ granted: ['n'], ended: ['a#r1#1!withdrawn'] });
      expect(key.takeUnclaimed()).toBe(0);
      expect(await r2.release('a')).toBe(false);
    });
  });

  test('an approval is remembered for as long as it is kept for its caller, whatever the windows', async () => {
    const short = key.replica('r1', { limits: { windowMillis: 100 }, leaseMillis: 100 });
    await short.pause(50);
    await check(short, 'a', 1, { keepMillis: 60_000 });
    await key.setTime(51);
    await short.settle();
    expect((await told()).granted).toEqual(['a#r1#1']);
    for (let millis = 100; millis < 3000; millis += 100) {
      await key.setTime(millis);
      await short.check([`x${millis}`]);
    }
    expect(await short.confirm(['a#1'])).toEqual([true]);
  });

  test('a confirmation that is sent again tells the same when the key is idle', async () => {
    const short = key.replica('r1', { limits: { windowMillis: 100 }, history });
    await short.pause(50);
    await check(short, 'a', 1);
    await key.setTime(51);
    await short.settle();
    expect(await short.confirm(['a#1', 'b#1'])).toEqual([true, false]);
    await key.setTime(500);
    expect(await short.confirm(['a#1', 'b#1'])).toEqual([true, false]);
    expect(await r2.confirm(['a#1'])).toEqual([false]);
  });
});
