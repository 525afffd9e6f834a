import { TEST_LEASE_MILLIS, useScriptHarness, type Verdict } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder, type WakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const KEEP_MILLIS = 3000;
/** As what the places count, rounded up. */
const KEPT = '+5000';
const limits = { windowMillis: 60_000 };

const key = useScriptHarness(redis);
/** Redis was up all the time, as these replicas know. */
const history = { since: 0 };
const r1 = key.replica('r1', { limits, history });
const r2 = key.replica('r2', { limits, history });
let wakes: WakeRecorder;
beforeEach(async () => {
  wakes = await recordWakes(key.names.wakeChannel);
});

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

async function told(): Promise<{ granted: string[]; ended: string[] }> {
  const all = (await wakes.take()).map((text) => JSON.parse(text) as Record<string, string[]>);
  return {
    granted: all.flatMap(({ granted = [] }) => granted),
    ended: all.flatMap(({ ended = [] }) => ended),
  };
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
    expect(await redis.client.hgetall(key.names.records)).toEqual({ b: '1:0+3000:r1#1' });
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

  test('is not renewed if Redis has fewer places than its replica knows', async () => {
    await check(r1, 'a', 1);
    expect(await r1.renew(2, { keepsAny: true })).toBe(false);
    expect(await r1.renew(1)).toBe(false);
    expect(await r2.renew(1, { keepsAny: true })).toBe(false);
  });

  test('outlives its replica by its time, rounded up, and other places do not', async () => {
    await r2.checkOrWait(['a']);
    await check(r2, 'b', 1);
    await key.setTime(TEST_LEASE_MILLIS + 4999);
    expect((await r1.settle()).waiting).toBe(1);
    await r1.release('f1');
    expect(await told()).toMatchObject({ granted: ['b#r2#1'] });
  });

  test('ends with that time', async () => {
    await check(r2, 'a', 1);
    await key.setTime(TEST_LEASE_MILLIS + 5000);
    expect((await r1.settle()).waiting).toBe(0);
  });

  test('of a replica that is gone does not look like an outage of Redis', async () => {
    await check(r2, 'a', 1);
    await key.setTime(TEST_LEASE_MILLIS + 1);
    await r1.release('f1');
    expect(await told()).toMatchObject({ granted: ['a#r2#1'] });
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

  test('can be taken over by a check that does not keep it, and the other way', async () => {
    await check(r1, 'a', 1);
    await check(r1, 'a', 2, { keepMillis: undefined });
    expect(await key.queued()).toEqual(['a@r1']);
    await check(r1, 'a', 3);
    expect(await key.queued()).toEqual([`a@r1${KEPT}`]);
  });

  test('is withdrawn by its replica, and by a release', async () => {
    await check(r1, 'a', 1);
    await check(r1, 'b', 2);
    await r1.withdraw(['a#1']);
    expect(await key.queued()).toEqual([`b@r1${KEPT}`]);
    expect(await r2.release('b')).toBe(true);
    expect(await key.queued()).toEqual([]);
    expect(await leases()).toEqual({});
  });

  test('is put back as it was after Redis has lost it', async () => {
    const ticket = (await check(r1, 'a', 1)) as number;
    await key.lose();
    await redis.client.del(key.names.records);
    await r1.settle({ 'a#1': ticket }, 0, '', { 'a#1': { keepMillis: KEEP_MILLIS } });
    expect(await key.queued()).toEqual([`a@r1${KEPT}`]);
    expect(await redis.client.hgetall(key.names.records)).toEqual({ a: '1:0+3000:r1#1' });
  });

  test('is put back for the newest of its checks, if its replica asks about several', async () => {
    const ticket = (await check(r1, 'a', 1)) as number;
    await key.lose();
    await redis.client.del(key.names.records);
    const terms = { 'a#1': { keepMillis: 100 }, 'a#2': { keepMillis: KEEP_MILLIS } };
    const reply = await r1.settle({ 'a#1': ticket, 'a#2': ticket }, 0, '', terms);
    expect(reply).toMatchObject({
      putBack: ['a#2'],
      ended: [{ claim: 'a#1', why: 'taken_over' }],
      places: 1,
    });
    expect(await key.queued()).toEqual([`a@r1${KEPT}`]);
    expect(await redis.client.hgetall(key.names.records)).toEqual({ a: '1:0+3000:r1#2' });
  });

  test('that was put back for an earlier check of its replica goes to the later one', async () => {
    const ticket = (await check(r1, 'a', 1)) as number;
    await check(r1, 'a', 2, { keepMillis: 100 });
    await key.lose();
    await redis.client.del(key.names.records);
    await r1.settle({ 'a#1': ticket }, 0, '', { 'a#1': { keepMillis: KEEP_MILLIS } });
    const reply = await r1.settle({ 'a#2': ticket }, 0, '', { 'a#2': { keepMillis: 100 } });
    expect(reply).toMatchObject({ putBack: [], ended: [], places: 1 });
    expect(await key.queued()).toEqual(['a@r1+100']);
    expect(await redis.client.hgetall(key.names.records)).toEqual({ a: '1:0+100:r1#2' });
    expect((await r1.settle({ 'a#1': ticket })).ended).toEqual([
      { claim: 'a#1', why: 'taken_over' },
    ]);
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

  test('has its longest wait from its ticket on', async () => {
    await check(r1, 'a', 1, { maxWaitMillis: 90_000 });
    await key.setTime(5000);
    await r1.settle();
    expect(await check(r2, 'a', 7, { maxWaitMillis: 5000 })).toBe('wait expired');
    expect(await key.queued()).toEqual([]);
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
    expect(await redis.client.hgetall(key.names.granted)).toEqual({ a: 'granted:1:0+3000:r1#1' });
    expect(await key.queued()).toEqual(['n@r2']);
  });

  test('is known as an approval that is held for its time', async () => {
    await grant();
    await key.setTime(1000);
    expect(await r2.status('a')).toEqual({ status: 'approved', holdMillis: 2000 });
    await key.setTime(3000);
    expect(await r2.status('a')).toBeUndefined();
  });

  test('counts in the present window once it is confirmed, and can be released', async () => {
    await grant();
    await key.setTime(1000);
    expect(await r1.confirm(['a#1'])).toEqual([true]);
    expect(await key.counted()).toEqual({ approved: 2, held: 0 });
    expect((await key.stored()).requests).toEqual(['a', 'f2']);
    await key.setTime(4000);
    await r1.settle();
    expect(await key.counted()).toEqual({ approved: 2, held: 0 });
    expect(await r1.release('a')).toBe(true);
    expect(await key.counted()).toEqual({ approved: 2, held: 0 });
    expect(key.takeUnclaimed()).toBe(0);
  });

  test('is confirmed once if the call is sent again', async () => {
    await grant();
    await r1.confirm(['a#1']);
    const before = await key.stored();
    expect(await key.replica('r1', { limits, guard: sentAgain }).confirm(['a#1'])).toEqual([true]);
    expect((await key.stored()).state).toEqual(before.state);
  });

  test.each(['records', 'granted'] as const)(
    'can be confirmed after %s was removed',
    async (name) => {
      const ticket = (await check(r1, 'a', 1)) as number;
      await redis.client.del(key.names[name]);
      await r1.release('f1');
      await redis.client.del(key.names[name]);
      const terms = { 'a#1': { keepMillis: KEEP_MILLIS } };
      expect((await r1.settle({ 'a#1': ticket }, 0, '', terms)).granted).toEqual(['a#1']);
      expect(await r1.confirm(['a#1'])).toEqual([true]);
      expect(await key.counted()).toEqual({ approved: 2, held: 0 });
      expect(await check(r2, 'a', 2)).toBe('approved');
    },
  );

  test.each(['state', 'holds'] as const)(
    'is lost with the %s, and exceeds no maximum',
    async (name) => {
      const ticket = (await check(r1, 'a', 1)) as number;
      await r1.release('f1');
      await redis.client.del(key.names[name]);
      if (name === 'state') await fill();
      expect(await r1.confirm(['a#1'])).toEqual([false]);
      const terms = { 'a#1': { keepMillis: KEEP_MILLIS } };
      expect((await r1.settle({ 'a#1': ticket }, 0, '', terms)).putBack).toEqual(['a#1']);
      await r1.withdraw(['a#1']);
      expect(await key.counted()).toMatchObject({ approved: 2 });
    },
  );

  test('is lost with the state for a check that comes back', async () => {
    await check(r1, 'a', 1);
    await r1.release('f1');
    await redis.client.del(key.names.state);
    await fill();
    expect(await check(r2, 'a', 2)).toEqual(expect.any(Number));
    expect(await key.counted()).toEqual({ approved: 2, held: 0 });
  });

  test('is put back in its place if Redis has lost the state, and with it what is held', async () => {
    const ticket = await grant();
    await redis.client.del(key.names.state);
    expect(await r1.confirm(['a#1'])).toEqual([false]);
    const terms = { 'a#1': { keepMillis: KEEP_MILLIS } };
    expect(await r1.settle({ 'a#1': ticket }, 0, '', terms)).toMatchObject({ putBack: ['a#1'] });
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

  test('is held for its own time from the confirmation on, if it asked for that', async () => {
    await grant({ holdMillis: 10_000 });
    expect(await key.storedHolds()).toEqual({ a: '3000:3000' });
    await key.setTime(2000);
    expect(await r1.confirm(['a#1'])).toEqual([true]);
    expect(await key.storedHolds()).toEqual({ a: '12000:10000' });
  });

  test('lapses without a confirmation: the next one is served, and the id is unknown', async () => {
    await grant();
    await wakes.take();
    await key.setTime(3000);
    await r2.settle();
    expect(await told()).toMatchObject({ granted: ['n'] });
    expect(key.takeUnclaimed()).toBe(1);
    expect(await redis.client.exists(key.names.granted)).toBe(0);
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

  test('is told to its replica by a settle, with what is left of its time', async () => {
    const ticket = await grant();
    await key.setTime(1000);
    const { granted, holdsLeft } = await r1.settle({ 'a#1': ticket });
    expect({ granted, left: holdsLeft.get('a#1') }).toEqual({ granted: ['a#1'], left: 2000 });
  });

  test('is put back in its place by a settle if it has lapsed', async () => {
    const ticket = await grant();
    await key.setTime(3000);
    const terms = { 'a#1': { keepMillis: KEEP_MILLIS } };
    const { putBack, granted } = await r1.settle({ 'a#1': ticket }, 0, '', terms);
    expect({ putBack, granted }).toEqual({
      putBack: ['a#1'],
      granted: ['a#r1#1'.replace('r1#', '')],
    });
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

  test('can not be corrected or renewed before its caller has it', async () => {
    await grant();
    expect(await r1.amend('a', 1)).toBe(false);
    expect(await r1.renewHold('a')).toBeUndefined();
  });

  test('takes none of the holds that a key may have, unless it is held for itself', async () => {
    const bounded = key.replica('r1', { limits: { ...limits, maxRequests: 9 }, maxHoldsPerKey: 1 });
    await bounded.pause(1000);
    await check(bounded, 'a', 1);
    await check(bounded, 'b', 2);
    await bounded.pause(0);
    expect((await told()).granted).toEqual(['a#r1#1', 'b#r1#2']);
    expect(await bounded.checkHold('h1', 5000)).toBe('approved');
    expect(await bounded.checkHold('h2', 5000)).toBe('key full');
    await bounded.confirm(['a#1', 'b#2']);
    expect(await bounded.checkHold('h2', 5000)).toBe('key full');
    await bounded.release('h1');
    expect(await bounded.checkHold('h2', 5000)).toBe('approved');
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

test('no more approvals are kept for their callers than ids are kept of when these come', async () => {
  const bounded = key.replica('r1', { limits: { ...limits, maxRequests: 9 }, maxIdsPerKey: 2 });
  await bounded.pause(1000);
  for (const [i, id] of ['a', 'b', 'c'].entries()) await check(bounded, id, i);
  await bounded.pause(0);
  await bounded.settle();
  expect((await told()).granted).toEqual(['a#r1#0', 'b#r1#1']);
  expect(await bounded.check(['x'])).toEqual(['key full']);
  expect(await bounded.confirm(['a#0', 'b#1'])).toEqual([true, true]);
  await bounded.settle();
  expect(await key.queued()).toEqual([`c@r1${KEPT}`]);
  await bounded.release('a');
  expect((await told()).granted).toEqual(['c#r1#2']);
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

describe.each([
  ['sliding window', { name: 'sliding_window', steps: 2 }],
  ['token bucket', { name: 'token_bucket', burst: 3 }],
] as const)('of a %s', (_name, algorithm) => {
  const own = { windowMillis: 60_000, maxRequests: 3, algorithm };
  const here = key.replica('r1', { limits: own });

  beforeEach(async () => {
    await here.check(['f1', 'f2']);
    await here.pause(1000);
    await check(here, 'a', 1);
    await here.pause(0);
  });

  test('an approval counts once, whether it is kept for its caller or confirmed', async () => {
    expect(await key.counted()).toMatchObject({ approved: 3, held: 1 });
    expect(await here.confirm(['a#1'])).toEqual([true]);
    expect(await key.counted()).toEqual({ approved: 3, held: 0 });
    expect(await here.settle({ 'a#1': 0 })).toMatchObject({ granted: ['a#1'] });
    expect(await here.release('a')).toBe(true);
    expect(await key.counted()).toEqual({ approved: 2, held: 0 });
  });

  test('an approval that lapses is given back, and its id takes again', async () => {
    await key.setTime(KEEP_MILLIS);
    expect(await check(here, 'a', 2)).toBe('approved');
    expect(key.takeUnclaimed()).toBe(1);
    expect(await here.check(['y'])).toEqual(['denied']);
  });
});
