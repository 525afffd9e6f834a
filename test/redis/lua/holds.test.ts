import { StoreFullError } from '../../../src/limiter/errors.js';
import { checkBatchOf, useScriptHarness, TEST_LEASE_MILLIS } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const limits = { maxRequests: 2 };

const key = useScriptHarness(redis);
const replica = key.replica('r1', { limits });

describe('a check whose approval is held', () => {
  test('leaves its id with the time of its lapse and its length, and is in no set', async () => {
    await key.setTime(100);
    expect(await replica.checkHold('a', 2500)).toBe('approved');
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2, held: 1, lapses: [2600, 2600] },
      requests: ['b'],
      pastRequests: ['b'],
    });
    expect(await key.storedHolds()).toEqual({ a: '2600:2500' });
  });

  test('expires no sooner than the window and its hold', async () => {
    await replica.checkHold('a', 500);
    expect((await key.stored()).expiry).toMatchObject({ state: 11_000, holds: 11_000 });
    await replica.checkHold('b', 60_000);
    expect((await key.stored()).expiry).toMatchObject({ state: 60_000, holds: 60_000 });
  });

  test('leaves a plain key when it has ended', async () => {
    await replica.checkHold('a', 500);
    await key.setTime(500);
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await redis.client.hgetall(key.names.state)).not.toHaveProperty('more');
    expect(await key.storedHolds()).toEqual({});
  });

  test('of a new key fails in a full Redis', async () => {
    const check = { requestId: 'a', canWait: false, holdMillis: 2500 };
    const [reply] = await whileFull(redis.client, () =>
      replica.scripts.check([checkBatchOf(key.names, [check])]),
    );
    expect(reply).toBeInstanceOf(StoreFullError);
    expect((await key.stored()).expiry).toEqual({});
  });

  test('leaves the key to be removed when it lapses', async () => {
    // Three windows are no shorter than this lease, so nothing outlives them.
    const other = key.replica('r2', { limits, leaseMillis: 3000 });
    await other.checkHold('a', 60_000);
    await key.setTime(59_999);
    await other.settle();
    expect((await key.stored()).state).toMatchObject({ start: 59_000, approved: 1 });
    await key.setTime(60_000);
    await other.settle();
    expect((await key.stored()).expiry).toEqual({});
  });
});

describe('a renewal', () => {
  beforeEach(async () => {
    await replica.checkHold('a', 1500);
  });

  test('begins a hold of the greatest length again, and no longer one', async () => {
    await key.setTime(500);
    expect(await replica.renewHold('a', { maxHoldMillis: 1500 })).toMatchObject({
      holdMillis: 1500,
    });
    await key.setTime(600);
    expect(await replica.renewHold('a', { hits: 1, maxHoldMillis: 1499 })).toMatchObject({
      holdMillis: 1400,
    });
    expect(await replica.renewHold('a', { maxHoldMillis: 1499 })).toEqual({ rejected: 'hold' });
  });

  test('to a longer hold puts off the expiry of every name', async () => {
    await replica.check(['b']);
    await replica.renewHold('a', { holdMillis: 80_000 });
    const { state, requests, holds } = await key.expiry();
    expect([state, requests, holds]).toEqual([80_000, 80_000, 80_000]);
  });

  test('finds nothing after Redis has lost its memory', async () => {
    await key.lose('state', 'holds');
    expect(await replica.renewHold('a')).toBeUndefined();
    expect(await replica.check(['b', 'c'])).toEqual(['approved', 'approved']);
    expect(await replica.renewHold('a')).toBeUndefined();
  });

  test('to a shorter hold tells those who wait when there is room', async () => {
    await replica.checkHold('b', 60_000);
    await replica.checkOrWait(['w']);
    const wakes = await recordWakes(key.names.wakeChannel);
    await key.setTime(200);
    await replica.renewHold('a', { holdMillis: 5000 });
    expect(await wakes.take()).toEqual([]);
    await replica.renewHold('a', { holdMillis: 300 });
    expect(await wakes.read()).toMatchObject([{ millisToRoom: 300, waiting: 1, granted: [] }]);
    await key.setTime(500);
    expect((await replica.settle()).granted).toEqual(['w']);
  });
});

test('the hits of a held approval are stored with it, and corrected with a renewal', async () => {
  const wide = key.replica('r1', { limits: { maxRequests: 5 } });
  await wide.checkHold('a', 1500, { hits: 3 });
  expect(await key.storedHolds()).toEqual({ a: '1500:1500*3' });
  expect(await redis.client.exists(key.names.hits)).toBe(0);
  await key.setTime(100);
  for (const [hits, stored] of [
    [4, '1600:1500*4'],
    [1, '1600:1500'],
    [0, '1600:1500*0'],
  ] as const) {
    await wide.renewHold('a', { hits });
    expect(await key.storedHolds()).toEqual({ a: stored });
    expect(await key.counted()).toEqual({ approved: hits, held: hits });
  }
});

describe('waiters while approvals are held', () => {
  beforeEach(async () => {
    await replica.checkHold('a', 2500);
    await replica.checkHold('b', 60_000);
  });

  test('are served in their order at the lapse, and their replicas are told', async () => {
    await replica.checkOrWait(['w', 'x']);
    const wakes = await recordWakes(key.names.wakeChannel);
    await key.setTime(2499);
    expect((await replica.settle()).granted).toEqual([]);
    expect(await wakes.take()).toEqual([]);
    await key.setTime(2500);
    expect(await key.replica('r2', { limits }).check(['late'])).toEqual(['denied']);
    expect(await wakes.take()).toEqual([expect.stringContaining('"granted":["w"]')]);
    expect(await key.queued()).toEqual(['x@r1']);
  });

  test('learn of the end of the window as soon as it makes room for them', async () => {
    for (const id of ['a', 'b']) await replica.release(id);
    await replica.checkHold('h', 60_000);
    await replica.check(['p']);
    await replica.renewHold('h', { hits: 2 });
    await replica.checkOrWait(['w']);
    expect(await replica.settle()).toMatchObject({ millisToRoom: 60_000 });
    const wakes = await recordWakes(key.names.wakeChannel);
    await key.setTime(100);
    await replica.renewHold('h', { hits: 1 });
    expect(await wakes.take()).toEqual([expect.stringContaining('"millisToRoom":900,')]);
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual(['w']);
  });
});

describe('a waiter whose approval will be held', () => {
  const wide = key.replica('r1', { limits: { maxRequests: 5, maxRequestsInQueue: 10 } });
  beforeEach(async () => {
    await wide.checkHits('a', 5);
    await wide.checkHold('w', 2500, { canWait: true });
    await wide.checkHold('x', 3500, { canWait: true, hits: 3 });
  });

  test('is reported as approved also many windows later, while its hold lasts', async () => {
    await key.setTime(1000);
    await wide.settle();
    for (const now of [2000, 3000]) {
      await key.setTime(now);
      await wide.renewHold('w', { holdMillis: 60_000 });
    }
    await key.setTime(61_000);
    const { granted, holdsLeft, putBack, waiting } = await wide.settle({ w: 0, x: 1 }, 0, '', {
      w: { holdMillis: 2500 },
      x: { hits: 3, holdMillis: 3500 },
    });
    // The hold of x has lapsed, so its replica has not heard of it in time: x is approved again.
    expect(granted).toEqual(['w', 'x']);
    expect([...holdsLeft]).toEqual([['w', 2000]]);
    expect(putBack).toEqual(['x']);
    expect(waiting).toBe(0);
    expect(await key.storedHolds()).toEqual({ w: '63000:60000', x: '64500:3500*3' });
    expect(await key.counted()).toEqual({ approved: 4, held: 4 });
  });

  test('is in the queue with its hits and its hold, also after Redis has lost its memory', async () => {
    const entries = [
      expect.stringMatching(/^\d{16}:w~2500@r1$/),
      expect.stringMatching(/^\d{16}:x\*3~3500@r1$/),
    ];
    expect(await redis.client.lrange(key.names.queue, 0, -1)).toEqual(entries);
    await key.lose();
    const terms = { w: { holdMillis: 2500 }, x: { hits: 3, holdMillis: 3500 } };
    await wide.settle({ w: 0, x: 1 }, 900, '', terms);
    expect(await redis.client.lrange(key.names.queue, 0, -1)).toEqual(entries);
    await key.setTime(1000);
    expect((await wide.settle()).granted).toEqual(['w', 'x']);
    expect(await key.storedHolds()).toEqual({ w: '3500:2500', x: '4500:3500*3' });
  });
});

describe('names that somebody has removed alone', () => {
  test('the state: no hold counts any more, and none comes back', async () => {
    await replica.checkHold('a', 60_000);
    await replica.checkHold('b', 60_000);
    await key.lose('state');
    expect(await replica.renewHold('a')).toBeUndefined();
    expect(await replica.check(['c'])).toEqual(['approved']);
    expect(await key.counted()).toEqual({ approved: 1, held: 0 });
    expect(await replica.renewHold('a')).toBeUndefined();
    expect(await replica.release('a')).toBe(false);
    expect(await replica.checkHold('d', 2500)).toBe('approved');
    expect(await key.storedHolds()).toEqual({ d: '2500:2500' });
    expect(await key.counted()).toEqual({ approved: 2, held: 1 });
  });

  test('the holds: they count until the first would have lapsed, and others are not lost', async () => {
    await replica.checkHold('a', 500);
    await key.lose('holds');
    expect(await replica.checkHold('b', 2500)).toBe('approved');
    expect(await replica.check(['c'])).toEqual(['denied']);
    await replica.checkOrWait(['w']);
    await key.setTime(500);
    expect(await replica.check(['d'])).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2, held: 1, lapses: [2500, 2500] },
      requests: ['w'],
    });
  });

  test.each(['queue', 'waiting', 'replicas'] as const)(
    'the %s: a renewal that finds it begins a recovery hold for those who come back',
    async (lost) => {
      const ids = ['a', 'b'];
      for (const id of ids) await replica.checkHold(id, 60_000);
      await replica.checkOrWait(['w']);
      await key.lose(lost);
      await key.setTime(100);
      await replica.renewHold('a');
      expect((await key.stored()).state).toMatchObject({ holdUntil: 600 });
      await replica.release('b');
      expect(await replica.check(['late'])).toEqual(['denied']);
      await replica.settle({ w: 1 });
      await key.setTime(600);
      expect((await replica.settle()).granted).toEqual(['w']);
    },
  );

  test('the holds: waiters come first, even if no check asks for a hold', async () => {
    await replica.checkHold('a', 500);
    await replica.checkHold('b', 500);
    await replica.checkOrWait(['w']);
    await key.lose('holds');
    await key.setTime(500);
    expect(await replica.check(['c', 'd'])).toEqual(['approved', 'denied']);
    expect((await key.stored()).requests).toEqual(['c', 'w']);
  });
});

describe('holds and pauses when the clock goes back', () => {
  beforeEach(async () => {
    await key.setTime(10_000);
    await replica.checkHold('a', 2500);
    await replica.check(['b']);
  });

  test('a hold goes on until its lapse if the clock goes back within the window', async () => {
    await key.setTime(9500);
    expect(await replica.check(['c'])).toEqual(['denied']);
    expect(await replica.renewHold('a', { holdMillis: 1000 })).toEqual({ holdMillis: 1000 });
    await key.setTime(10_499);
    expect(await key.counted()).toEqual({ approved: 2, held: 1 });
    await key.setTime(10_500);
    expect(await replica.check(['d'])).toEqual(['approved']);
  });

  test('an ended hold of an idle key does not count again if the clock goes back to before its end', async () => {
    await key.setTime(20_000);
    // The state is kept, since it knows which ids were approved.
    await replica.settle();
    expect((await key.stored()).state).toBeDefined();
    await key.setTime(10_000);
    expect(await key.counted()).toEqual({ approved: 0, held: 0 });
    expect(await replica.check(['c', 'd', 'e'])).toEqual(['approved', 'approved', 'denied']);
  });

  test('a hold lasts its length at most if the clock goes back to before it was set', async () => {
    await key.setTime(0);
    expect(await replica.check(['c'])).toEqual(['denied']);
    expect(await key.counted()).toEqual({ approved: 2, held: 1 });
    await key.setTime(2499);
    expect(await replica.check(['e', 'f'])).toEqual(['approved', 'denied']);
    await key.setTime(2500);
    expect(await replica.check(['g'])).toEqual(['approved']);
    expect(await key.counted()).toEqual({ approved: 2, held: 0 });
  });

  test('holds and pauses last their lengths at most if the clock goes back within a long window', async () => {
    const long = key.replica('r1', { limits: { windowMillis: 3_600_000, maxRequests: 3 } });
    await key.setTime(100_000);
    await key.lose('state');
    await long.check(['first']);
    await key.setTime(200_000);
    await long.checkHold('held', 1000);
    await long.checkHold('longer', 60_000);
    await long.pause(2000);
    await key.setTime(170_000);
    expect(await long.check(['c'])).toEqual(['paused']);
    await key.setTime(170_999);
    expect(await long.check(['d'])).toEqual(['paused']);
    expect(await key.counted()).toEqual({ approved: 3, held: 2 });
    await key.setTime(171_999);
    expect(await long.check(['d'])).toEqual(['paused']);
    expect(await key.counted()).toEqual({ approved: 2, held: 1 });
    await key.setTime(172_000);
    expect(await long.check(['e', 'f'])).toEqual(['approved', 'denied']);
    await key.setTime(230_000);
    expect(await long.check(['g', 'h'])).toEqual(['approved', 'denied']);
    expect((await key.stored()).state).toMatchObject({ start: 100_000 });
  });

  test("settle reports at most a hold's length if the clock goes back to before the hold", async () => {
    await key.setTime(9000);
    const { granted, holdsLeft } = await replica.settle({ a: 0 });
    expect(granted).toEqual(['a']);
    expect([...holdsLeft]).toEqual([['a', 2500]]);
  });

  test('a pause lasts at most what was left of it at the last renewal of a hold if the clock goes back', async () => {
    await replica.pause(60_000);
    await key.setTime(12_000);
    await replica.renewHold('a');
    await key.setTime(5000);
    await replica.check(['c']);
    expect((await replica.inspect())?.pausedMillis).toBe(58_000);
  });
});

test('the hold of a waiter outlives the lease of its replica', async () => {
  await replica.check(['a', 'b']);
  await replica.checkHold('w', 60_000, { canWait: true });
  await key.setTime(1000);
  await replica.settle();
  await key.setTime(TEST_LEASE_MILLIS * 10);
  expect(await key.replica('r2', { limits }).check(['c', 'd'])).toEqual(['approved', 'denied']);
});
