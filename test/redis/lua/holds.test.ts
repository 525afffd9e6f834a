import { StoreFullError } from '../../../src/limiter/errors.js';
import type { CheckBatch } from '../../../src/redis/scripts/check-codec.js';
import {
  type ReplicaOptions,
  ScriptHarness,
  TEST_LEASE_MILLIS,
  type TestReplica,
} from '../../support/script-harness.js';
import { beforeOrder } from '../../support/before-order.js';
import { elementsRead } from '../../support/elements-read.js';
import { limiterRules } from '../../support/redis-user.js';
import { uniqueKey } from '../../support/unique-key.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const limits = { maxRequests: 2 };

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1', { limits });
});

/** By id, when each stored hold lapses, in ms after the start, and what else is stored of it. */
async function storedHolds(): Promise<Record<string, string>> {
  const holds = await redis.client.hgetall(key.names.holds);
  return Object.fromEntries(
    Object.entries(holds).map(([id, hold]) => {
      const [lapses = '', ...others] = hold.split(':');
      return [id, [Number(lapses) - key.startMillis, ...others].join(':')];
    }),
  );
}

/** The approvals that count, and the hits of the held ones among them. */
async function counted(): Promise<unknown> {
  const { state } = await key.stored();
  return { approved: state?.approved, held: state?.held ?? 0 };
}

async function waiters(): Promise<string[]> {
  return (await key.stored()).queue.map(([waiter]) => waiter);
}

const again = (options: ReplicaOptions = {}): TestReplica =>
  key.replica('r1', { limits, guard: sentAgain, ...options });

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
    expect(await storedHolds()).toEqual({ a: '2600:2500' });
  });

  test('expires no sooner than the window and its hold', async () => {
    await replica.checkHold('a', 500);
    expect((await key.stored()).expiry).toMatchObject({ state: 11_000, holds: 11_000 });
    await replica.checkHold('b', 60_000);
    expect((await key.stored()).expiry).toMatchObject({ state: 60_000, holds: 60_000 });
  });

  test('leaves nothing of it to plain checks when it has ended', async () => {
    await replica.checkHold('a', 500);
    await key.setTime(500);
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await redis.client.hgetall(key.names.state)).not.toHaveProperty('more');
    expect(await key.stored()).toMatchObject({ state: { approved: 1 }, requests: ['b'] });
    expect(await storedHolds()).toEqual({});
  });

  test('is denied if there is no room, and takes nothing', async () => {
    await replica.check(['a', 'b']);
    expect(await replica.checkHold('c', 2500)).toBe('denied');
    expect(await key.stored()).toMatchObject({ state: { approved: 2, denied: 1 } });
    expect(await storedHolds()).toEqual({});
  });

  test('is decided in its order among others of its batch', async () => {
    const verdicts = await replica.checkBatch([
      { requestId: 'a', canWait: false },
      { requestId: 'b', canWait: false, holdMillis: 2500 },
      { requestId: 'c', canWait: false },
      { requestId: 'd', canWait: false, holdMillis: 2500 },
    ]);
    expect(verdicts).toEqual(['approved', 'approved', 'denied', 'denied']);
    expect((await key.stored()).requests).toEqual(['a']);
    expect(await storedHolds()).toEqual({ b: '2500:2500' });
  });

  test('of a new key fails in a full Redis', async () => {
    const batch: CheckBatch = {
      names: key.names,
      overrides: { maxRequests: undefined, maxRequestsInQueue: undefined },
      waiting: undefined,
      checks: [{ requestId: 'a', canWait: false, holdMillis: 2500 }],
    };
    const [reply] = await whileFull(redis.client, () => replica.scripts.check([batch]));
    expect(reply).toBeInstanceOf(StoreFullError);
    expect((await key.stored()).expiry).toEqual({});
  });
});

describe('a held approval', () => {
  beforeEach(async () => {
    await replica.checkHold('a', 2500);
  });

  test('counts first in every window until its hold lapses', async () => {
    for (const [now, id] of [
      [1000, 'b'],
      [2000, 'c'],
    ] as const) {
      await key.setTime(now);
      expect(await replica.check([id, `${id}2`])).toEqual(['approved', 'denied']);
      expect(await counted()).toEqual({ approved: 2, held: 1 });
      expect((await key.stored()).requests).toEqual([id]);
    }
    await key.setTime(3000);
    expect(await replica.check(['d', 'e', 'f'])).toEqual(['approved', 'approved', 'denied']);
    expect(await counted()).toEqual({ approved: 2, held: 0 });
  });

  test.each([
    ['in the last millisecond before its lapse', 2499, 1],
    ['at its lapse', 2500, 2],
  ])('gives its room back within a window: %s', async (_when, now, approved) => {
    await key.setTime(2000);
    await replica.settle();
    await key.setTime(now);
    const verdicts = await replica.check(['b', 'c']);
    expect(verdicts.filter((each) => each === 'approved')).toHaveLength(approved);
  });

  test('that lapses at the end of a window does not count in the next', async () => {
    await replica.checkHold('b', 1000);
    await key.setTime(1000);
    expect(await replica.check(['c', 'd'])).toEqual(['approved', 'denied']);
    expect(await storedHolds()).toEqual({ a: '2500:2500' });
  });

  test('keeps its key, in which windows follow back to back', async () => {
    await replica.renewHold('a', { holdMillis: 60_000 });
    await key.setTime(59_700);
    expect(await replica.inspect()).toMatchObject({ used: 1, held: 1 });
    expect(await replica.check(['b', 'c'])).toEqual(['approved', 'denied']);
    expect((await key.stored()).state).toMatchObject({ start: 59_000 });
  });

  test('that lapses in a key without checks leaves the key to be removed', async () => {
    // Three windows are no shorter than this lease, so nothing outlives them.
    const other = key.replica('r2', { limits, leaseMillis: 3000 });
    await other.renewHold('a', { holdMillis: 60_000 });
    await key.setTime(59_999);
    await other.settle();
    expect((await key.stored()).state).toMatchObject({ start: 59_000, approved: 1 });
    await key.setTime(60_000);
    expect(await other.inspect()).toBeUndefined();
    await other.settle();
    expect((await key.stored()).expiry).toEqual({});
  });

  test('is released once, also in a later window', async () => {
    await key.setTime(1500);
    expect(await replica.release('a')).toBe(true);
    expect(await counted()).toEqual({ approved: 0, held: 0 });
    expect(await key.stored()).toMatchObject({ state: { start: 1000 }, pastRequests: ['a'] });
    expect(await replica.release('a')).toBe(false);
    expect(await replica.renewHold('a')).toBeUndefined();
    expect(await replica.check(['b', 'c', 'd'])).toEqual(['approved', 'approved', 'denied']);
  });

  test('is not released once its hold has lapsed', async () => {
    await key.setTime(2500);
    expect(await replica.release('a')).toBe(false);
    expect(await counted()).toEqual({ approved: 0, held: 0 });
  });

  test('counts beside those of the window: each is released by its id', async () => {
    await replica.check(['b']);
    expect(await replica.release('b')).toBe(true);
    expect(await counted()).toEqual({ approved: 1, held: 1 });
    expect(await replica.release('a')).toBe(true);
    expect(await counted()).toEqual({ approved: 0, held: 0 });
  });
});

describe('several holds of a key', () => {
  test('lapse one after the other', async () => {
    const wide = key.replica('r1', { limits: { maxRequests: 4 } });
    await wide.checkHold('a', 1500);
    await wide.checkHold('b', 500);
    await wide.checkHold('c', 1200);
    expect((await key.stored()).state).toMatchObject({ held: 3, lapses: [500, 1500] });
    for (const [now, left, first] of [
      [500, ['a', 'c'], 1200],
      [1200, ['a'], 1500],
    ] as const) {
      await key.setTime(now);
      await wide.settle();
      expect(Object.keys(await storedHolds()).sort()).toEqual(left);
      expect((await key.stored()).state).toMatchObject({
        approved: left.length,
        held: left.length,
        lapses: [first, 1500],
      });
    }
    await key.setTime(1500);
    await wide.settle();
    expect(await counted()).toEqual({ approved: 0, held: 0 });
    expect(await storedHolds()).toEqual({});
  });
});

describe('a renewal', () => {
  beforeEach(async () => {
    await replica.checkHold('a', 1500);
  });

  test('moves the lapse by the length of the hold, and the old time ends nothing', async () => {
    await key.setTime(1400);
    expect(await replica.renewHold('a')).toEqual({ holdMillis: 1500 });
    await key.setTime(1500);
    expect((await replica.settle()).granted).toEqual([]);
    expect(await counted()).toEqual({ approved: 1, held: 1 });
    expect((await key.stored()).state).toMatchObject({ lapses: [2900, 2900] });
    await key.setTime(2899);
    await replica.settle();
    expect(await counted()).toEqual({ approved: 1, held: 1 });
    await key.setTime(2900);
    await replica.settle();
    expect(await counted()).toEqual({ approved: 0, held: 0 });
  });

  test('may change the length, which the next one keeps', async () => {
    expect(await replica.renewHold('a', { holdMillis: 700 })).toEqual({ holdMillis: 700 });
    await key.setTime(600);
    expect(await replica.renewHold('a')).toEqual({ holdMillis: 700 });
    expect(await storedHolds()).toEqual({ a: '1300:700' });
  });

  test('to a longer hold puts off the expiry of every name', async () => {
    await replica.check(['b']);
    await replica.renewHold('a', { holdMillis: 80_000 });
    const { state, requests, holds } = await key.expiry();
    expect([state, requests, holds]).toEqual([80_000, 80_000, 80_000]);
  });

  test.each([
    ['in the last millisecond before the lapse', 1499, { holdMillis: 1500 }],
    ['at the lapse', 1500, undefined],
    ['long after the lapse', 3400, undefined],
  ])('comes in time, or finds nothing: %s', async (_when, now, found) => {
    await key.setTime(now);
    expect(await replica.renewHold('a')).toEqual(found);
    expect(await counted()).toEqual({ approved: found ? 1 : 0, held: found ? 1 : 0 });
  });

  test('does not turn an approval of the window into a held one', async () => {
    await replica.check(['b']);
    expect(await replica.renewHold('b', { holdMillis: 5000 })).toBeUndefined();
    expect(await replica.renewHold('b', { holdMillis: 5000, hits: 2 })).toBeUndefined();
    expect(await replica.renewHold('b')).toBeUndefined();
    expect(await replica.renewHold('b', { hits: 1 })).toEqual({});
    expect(await counted()).toEqual({ approved: 2, held: 1 });
  });

  test('of an unknown id or key finds nothing, and creates nothing', async () => {
    expect(await replica.renewHold('z', { holdMillis: 5000 })).toBeUndefined();
    expect(Object.keys(await storedHolds())).toEqual(['a']);
    const other = await ScriptHarness.create(redis.client);
    expect(await other.replica('r1').renewHold('a', { holdMillis: 5000 })).toBeUndefined();
    expect((await other.stored()).expiry).toEqual({});
  });

  test('finds nothing after Redis has lost its memory', async () => {
    await redis.client.del(key.names.state, key.names.holds);
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
    const messages = (await wakes.take()).map((text) => JSON.parse(text) as unknown);
    expect(messages).toEqual([
      expect.objectContaining({ millisToRoom: 300, waiting: 1, granted: [] }),
    ]);
    await key.setTime(500);
    expect((await replica.settle()).granted).toEqual(['w']);
  });
});

describe('hits of a held approval', () => {
  beforeEach(() => {
    replica = key.replica('r1', { limits: { maxRequests: 5 } });
  });

  test('count together in each window', async () => {
    expect(await replica.checkHold('a', 1500, { hits: 3 })).toBe('approved');
    expect(await storedHolds()).toEqual({ a: '1500:1500*3' });
    expect(await redis.client.exists(key.names.hits)).toBe(0);
    await key.setTime(1000);
    expect(await replica.checkHits('b', 3)).toBe('denied');
    expect(await replica.checkHits('c', 2)).toBe('approved');
    expect(await counted()).toEqual({ approved: 5, held: 3 });
    await key.setTime(1500);
    expect(await replica.checkHits('d', 3)).toBe('approved');
    expect(await counted()).toEqual({ approved: 5, held: 0 });
  });

  test('are released together', async () => {
    await replica.checkHold('a', 1500, { hits: 3 });
    await key.setTime(1000);
    await replica.checkHits('b', 2);
    expect(await replica.release('a')).toBe(true);
    expect(await counted()).toEqual({ approved: 2, held: 0 });
  });

  test('are corrected with a renewal, also to one and to none', async () => {
    await replica.checkHold('a', 1500, { hits: 3 });
    await key.setTime(100);
    expect(await replica.renewHold('a', { hits: 4 })).toEqual({ holdMillis: 1500 });
    expect([await storedHolds(), await counted()]).toEqual([
      { a: '1600:1500*4' },
      { approved: 4, held: 4 },
    ]);
    expect(await replica.renewHold('a', { hits: 1, holdMillis: 900 })).toEqual({ holdMillis: 900 });
    expect([await storedHolds(), await counted()]).toEqual([
      { a: '1000:900' },
      { approved: 1, held: 1 },
    ]);
    await replica.renewHold('a', { hits: 0 });
    expect([await storedHolds(), await counted()]).toEqual([
      { a: '1000:900*0' },
      { approved: 0, held: 0 },
    ]);
    expect(await replica.release('a')).toBe(true);
    expect(await replica.release('a')).toBe(false);
  });

  test('may exceed the maximum, and then nobody is approved until there is room', async () => {
    await replica.checkHold('a', 60_000, { hits: 3 });
    await replica.renewHold('a', { hits: 7 });
    await key.setTime(1000);
    expect(await replica.check(['b'])).toEqual(['denied']);
    await replica.checkOrWait(['w']);
    await key.setTime(2000);
    expect((await replica.settle()).granted).toEqual([]);
    await replica.renewHold('a', { hits: 4 });
    expect(await key.stored()).toMatchObject({ state: { approved: 5 }, requests: ['w'] });
  });
});

describe('waiters while approvals are held', () => {
  beforeEach(async () => {
    await replica.checkHold('a', 2500);
    await replica.checkHold('b', 60_000);
  });

  test('learn of the first lapse and not of the end of the window, which makes no room', async () => {
    await replica.checkOrWait(['w']);
    await key.setTime(300);
    expect(await replica.settle()).toMatchObject({ millisToRoom: 2200, waiting: 1 });
    await replica.release('b');
    expect((await key.stored()).requests).toEqual(['w']);
    await replica.checkOrWait(['x']);
    expect(await replica.settle()).toMatchObject({ millisToRoom: 700, waiting: 1 });
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
    expect(await waiters()).toEqual(['x@r1']);
  });

  test('are not overtaken by a check that comes at the moment of the lapse', async () => {
    await replica.checkOrWait(['w']);
    await key.setTime(2500);
    expect(await key.replica('r2', { limits }).checkHold('late', 1000)).toBe('denied');
    expect((await key.stored()).requests).toEqual(['w']);
  });

  test('are served by a release', async () => {
    await replica.checkOrWait(['w']);
    await key.setTime(1700);
    await replica.release('b');
    expect(await key.stored()).toMatchObject({ queue: [], requests: ['w'] });
    expect(await counted()).toEqual({ approved: 2, held: 1 });
  });

  test('are not denied for their longest wait, unless that is none', async () => {
    const wait = { canWait: true, holdMillis: 1000 };
    const [short, none] = await replica.checkBatch([
      { requestId: 'w', ...wait, maxWaitMillis: 1 },
      { requestId: 'x', ...wait, maxWaitMillis: 0 },
    ]);
    expect([short, none]).toEqual([1, 'turn in 2500 ms']);
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
  beforeEach(async () => {
    replica = key.replica('r1', { limits: { maxRequests: 5, maxRequestsInQueue: 10 } });
    await replica.checkHits('a', 5);
    await replica.checkHold('w', 2500, { canWait: true });
    await replica.checkHold('x', 3500, { canWait: true, hits: 3 });
  });

  test('is in the queue with its hits and its hold', async () => {
    const entries = await redis.client.lrange(key.names.queue, 0, -1);
    expect(entries).toEqual([
      expect.stringMatching(/^\d{16}:w~2500@r1$/),
      expect.stringMatching(/^\d{16}:x\*3~3500@r1$/),
    ]);
    expect(await waiters()).toEqual(['w@r1', 'x@r1']);
  });

  test('is held from its approval on', async () => {
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual(['w', 'x']);
    expect(await storedHolds()).toEqual({ w: '3500:2500', x: '4500:3500*3' });
    expect(await counted()).toEqual({ approved: 4, held: 4 });
    expect((await key.stored()).requests).toEqual([]);
  });

  test('that is withdrawn after its approval gives its room to the next', async () => {
    await replica.checkOrWait(['y', 'z']);
    await key.setTime(1000);
    await replica.settle();
    expect(await waiters()).toEqual(['z@r1']);
    await key.setTime(2300);
    await replica.withdraw(['x']);
    expect(await storedHolds()).toEqual({ w: '3500:2500' });
    expect(await key.stored()).toMatchObject({ requests: ['z'], queue: [] });
    expect((await key.stored()).pastRequests).toContain('x');
  });

  test('is reported as approved also many windows later, while its hold lasts', async () => {
    await key.setTime(1000);
    await replica.settle();
    for (const now of [2000, 3000]) {
      await key.setTime(now);
      await replica.renewHold('w', { holdMillis: 60_000 });
    }
    await key.setTime(61_000);
    const { granted, holdsLeft, putBack, waiting } = await replica.settle({ w: 0, x: 1 }, 0, '', {
      w: { holdMillis: 2500 },
      x: { hits: 3, holdMillis: 3500 },
    });
    // The hold of x has lapsed, so its replica has not heard of it in time: x is approved again.
    expect(granted).toEqual(['w', 'x']);
    expect([...holdsLeft]).toEqual([['w', 2000]]);
    expect(putBack).toEqual(['x']);
    expect(waiting).toBe(0);
    expect(await storedHolds()).toEqual({ w: '63000:60000', x: '64500:3500*3' });
    expect(await counted()).toEqual({ approved: 4, held: 4 });
  });

  test('keeps its hits and its hold when Redis has lost its memory', async () => {
    await redis.client.del(...Object.values(await namesInRedis()));
    const terms = { w: { holdMillis: 2500 }, x: { hits: 3, holdMillis: 3500 } };
    await replica.settle({ w: 0, x: 1 }, 900, '', terms);
    expect(await redis.client.lrange(key.names.queue, 0, -1)).toEqual([
      expect.stringMatching(/^\d{16}:w~2500@r1$/),
      expect.stringMatching(/^\d{16}:x\*3~3500@r1$/),
    ]);
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual(['w', 'x']);
    expect(await storedHolds()).toEqual({ w: '3500:2500', x: '4500:3500*3' });
  });
});

/** The names of the key that exist. */
async function namesInRedis(): Promise<string[]> {
  return redis.client.keys(`${key.names.state}*`);
}

describe('the most holds of a key', () => {
  beforeEach(async () => {
    replica = key.replica('r1', { limits: { maxRequests: 5 }, maxHoldsPerKey: 2 });
    await replica.checkHold('a', 2500);
    await replica.checkHold('b', 60_000);
  });

  test('leave no place for another, but for approvals of the window', async () => {
    expect(await replica.checkHold('c', 2500)).toBe('key full');
    expect(await key.stored()).toMatchObject({ state: { approved: 2, denied: 0 } });
    expect(await replica.check(['d'])).toEqual(['approved']);
    await replica.release('a');
    expect(await replica.checkHold('c', 2500)).toBe('approved');
  });

  test('leave a place for another as soon as one has lapsed', async () => {
    await key.setTime(2500);
    expect(await replica.checkHold('c', 2500)).toBe('approved');
    expect(await replica.checkHold('d', 2500)).toBe('key full');
  });

  test('let a check wait for a lapse, and nobody overtakes it', async () => {
    expect(await replica.checkHold('w', 2500, { canWait: true })).toBe(1);
    expect(await replica.check(['d'])).toEqual(['denied']);
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual([]);
    expect(await replica.check(['e'])).toEqual(['denied']);
    await key.setTime(2500);
    expect((await replica.settle()).granted).toEqual(['w']);
    expect(await counted()).toEqual({ approved: 2, held: 2 });
    expect(await replica.check(['f'])).toEqual(['approved']);
  });

  test('do not count the ids of the window, nor the reverse', async () => {
    const small = key.replica('r1', {
      limits: { maxRequests: 5 },
      maxHoldsPerKey: 3,
      maxIdsPerKey: 2,
    });
    expect(await small.check(['c', 'd', 'e'])).toEqual(['approved', 'approved', 'key full']);
    expect(await small.checkHold('f', 2500)).toBe('approved');
    // The maximum is reached. A waiter whose approval is held needs no place in the set of ids.
    expect(await small.checkHold('w', 2500, { canWait: true })).toBe(1);
    await small.release('a');
    expect(Object.keys(await storedHolds()).sort()).toEqual(['b', 'f', 'w']);
    expect(await waiters()).toEqual([]);
  });

  test('leave a waiter without a place in the set of ids its turn', async () => {
    const small = key.replica('r1', {
      limits: { maxRequests: 5 },
      maxHoldsPerKey: 3,
      maxIdsPerKey: 2,
    });
    await small.check(['c', 'd']);
    await small.checkHold('f', 2500);
    await small.checkOrWait(['w']);
    await small.release('a');
    expect(await small.checkHold('late', 2500)).toBe('denied');
    expect(await waiters()).toEqual(['w@r1']);
    await key.setTime(1000);
    expect((await small.settle()).granted).toEqual(['w']);
  });
});

describe('a held check that is sent again', () => {
  test.each([0, 1000, 2499])('takes no second hold, %d ms later', async (millis) => {
    await replica.checkHold('a', 2500);
    await key.setTime(millis);
    expect(await again().checkHold('a', 2500)).toBe('approved');
    expect(await storedHolds()).toEqual({ a: '2500:2500' });
    expect(await counted()).toEqual({ approved: 1, held: 1 });
  });

  test('after the lapse is decided as a new one', async () => {
    await replica.checkHold('a', 500);
    await key.setTime(500);
    expect(await again().checkHold('a', 500)).toBe('approved');
    expect(await storedHolds()).toEqual({ a: '1000:500' });
    expect(await counted()).toEqual({ approved: 1, held: 1 });
  });

  test('after its release is told so, and takes nothing', async () => {
    await replica.checkHold('a', 2500);
    await key.setTime(1500);
    await replica.release('a');
    expect(await again().checkHold('a', 2500)).toBe('approved');
    expect(await storedHolds()).toEqual({});
    expect(await counted()).toEqual({ approved: 0, held: 0 });
  });

  test('keeps its place in the queue', async () => {
    await replica.check(['a', 'b']);
    const ticket = await replica.checkHold('w', 2500, { canWait: true });
    expect(await again().checkHold('w', 2500, { canWait: true })).toBe(ticket);
    expect(await waiters()).toEqual(['w@r1']);
  });
});

describe('a look at the key', () => {
  test('shows holds that have lapsed as ended, and writes nothing', async () => {
    const wide = key.replica('r1', { limits: { maxRequests: 6 } });
    await wide.checkHold('a', 500, { hits: 2 });
    await wide.checkHold('b', 1500, { hits: 3 });
    await wide.check(['c']);
    const before = await key.stored();
    const holds = await storedHolds();
    for (const [now, used, held] of [
      [499, 6, 5],
      [500, 4, 3],
      [1000, 3, 3],
      [1499, 3, 3],
      [1500, 0, 0],
    ]) {
      await key.setTime(now!);
      expect([now, await wide.inspect()]).toEqual([now, expect.objectContaining({ used, held })]);
      expect([now, await wide.examine()]).toEqual([now, expect.objectContaining({ used, held })]);
    }
    await key.setTime(4000);
    expect([await wide.inspect(), await wide.examine()]).toEqual([undefined, undefined]);
    expect(await key.stored()).toEqual(before);
    expect(await storedHolds()).toEqual(holds);
  });

  test('shows a key with a hold that was renewed past the first lapse', async () => {
    await replica.checkHold('a', 500);
    await replica.renewHold('a', { holdMillis: 9000 });
    await key.setTime(8999);
    expect(await replica.inspect()).toMatchObject({ used: 1, held: 1 });
    await key.setTime(9000);
    expect(await replica.inspect()).toBeUndefined();
  });
});

describe('names that somebody has removed alone', () => {
  test('the state: no hold counts any more, and none comes back', async () => {
    await replica.checkHold('a', 60_000);
    await replica.checkHold('b', 60_000);
    await redis.client.del(key.names.state);
    expect(await replica.renewHold('a')).toBeUndefined();
    expect(await replica.check(['c'])).toEqual(['approved']);
    expect(await counted()).toEqual({ approved: 1, held: 0 });
    expect(await replica.renewHold('a')).toBeUndefined();
    expect(await replica.release('a')).toBe(false);
    expect(await replica.checkHold('d', 2500)).toBe('approved');
    expect(await storedHolds()).toEqual({ d: '2500:2500' });
    expect(await counted()).toEqual({ approved: 2, held: 1 });
  });

  test('the holds: they count until the first would have lapsed, and others are not lost', async () => {
    await replica.checkHold('a', 500);
    await redis.client.del(key.names.holds);
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
      await redis.client.del(key.names[lost]);
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
    await redis.client.del(key.names.holds);
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
    expect(await counted()).toEqual({ approved: 2, held: 1 });
    await key.setTime(10_500);
    expect(await replica.check(['d'])).toEqual(['approved']);
  });

  test('an ended hold of an idle key does not count again if the clock goes back to before its end', async () => {
    await key.setTime(20_000);
    // The state is kept, since it knows which ids were approved.
    await replica.settle();
    expect((await key.stored()).state).toBeDefined();
    await key.setTime(10_000);
    expect(await counted()).toEqual({ approved: 0, held: 0 });
    expect(await replica.check(['c', 'd', 'e'])).toEqual(['approved', 'approved', 'denied']);
  });

  test('a hold lasts its length at most if the clock goes back to before it was set', async () => {
    await key.setTime(0);
    expect(await replica.check(['c'])).toEqual(['denied']);
    expect(await counted()).toEqual({ approved: 2, held: 1 });
    await key.setTime(2499);
    expect(await replica.check(['e', 'f'])).toEqual(['approved', 'denied']);
    await key.setTime(2500);
    expect(await replica.check(['g'])).toEqual(['approved']);
    expect(await counted()).toEqual({ approved: 2, held: 0 });
  });

  test('holds and pauses last their lengths at most if the clock goes back within a long window', async () => {
    const long = key.replica('r1', { limits: { windowMillis: 3_600_000, maxRequests: 3 } });
    await key.setTime(100_000);
    await redis.client.del(key.names.state);
    await long.check(['first']);
    await key.setTime(200_000);
    await long.checkHold('held', 1000);
    await long.checkHold('longer', 60_000);
    await long.pause(2000);
    await key.setTime(170_000);
    expect(await long.check(['c'])).toEqual(['paused']);
    await key.setTime(170_999);
    expect(await long.check(['d'])).toEqual(['paused']);
    expect(await counted()).toEqual({ approved: 3, held: 2 });
    await key.setTime(171_999);
    expect(await long.check(['d'])).toEqual(['paused']);
    expect(await counted()).toEqual({ approved: 2, held: 1 });
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

describe('a key with more holds than are read whole', () => {
  const MANY = 300;
  const many = { limits: { maxRequests: MANY + 10 }, maxHoldsPerKey: MANY + 10 };
  let many1: TestReplica;

  const hold = (id: string, holdMillis: number, hits = 1): Promise<unknown> =>
    many1.checkHold(id, holdMillis, { hits });

  /** All but the first three lapse after a minute or later. */
  beforeEach(async () => {
    many1 = key.replica('r1', many);
    await hold('first', 100);
    await hold('second', 200, 2);
    await hold('third', 300);
    await many1.checkBatch(
      Array.from({ length: MANY - 3 }, (_, i) => ({
        requestId: `h${i}`,
        canWait: false,
        holdMillis: 60_000 + i,
      })),
    );
  });

  test('is looked at without a look at those that have not lapsed', async () => {
    await key.setTime(250);
    const work = async (): Promise<void> => {
      expect(await many1.inspect()).toMatchObject({ used: MANY - 2, held: MANY - 2 });
      expect(await many1.examine()).toMatchObject({ held: MANY - 2 });
    };
    // The one that is the next to lapse is read as well.
    expect(await elementsRead(redis.client, key.names.holds, work)).toBe(2 * (2 + 1));
  });

  test('ends those that have lapsed without a look at the others', async () => {
    await key.setTime(250);
    // Those that have lapsed are gone when the reads are counted.
    const work = (): Promise<unknown> => many1.checkHold('new', 60_000);
    expect(await elementsRead(redis.client, key.names.holds, work)).toBeLessThanOrEqual(3);
    expect(await counted()).toEqual({ approved: MANY - 1, held: MANY - 1 });
    expect(Object.keys(await storedHolds())).not.toContain('second');
    expect((await key.stored()).state).toMatchObject({ lapses: [300, 60_000 + MANY - 4] });
  });

  test('ends a hold at its time after renewals, corrections and releases', async () => {
    await many1.renewHold('first', { holdMillis: 5000, hits: 3 });
    await many1.renewHold('third', { hits: 1 });
    await many1.release('second');
    await key.setTime(299);
    expect(await many1.inspect()).toMatchObject({ held: MANY + 1 });
    await key.setTime(300);
    expect(await many1.inspect()).toMatchObject({ held: MANY });
    await many1.renewHold('h0');
    expect((await key.stored()).state).toMatchObject({ held: MANY, lapses: [5000, 60_300] });
    await key.setTime(5000);
    await many1.renewHold('h0');
    expect(await counted()).toEqual({ approved: MANY - 3, held: MANY - 3 });
  });

  test('keeps the order of its holds for as long as the holds', async () => {
    const { holds, holdsByLapse } = key.names;
    expect(await redis.client.zcard(holdsByLapse)).toBe(MANY);
    expect((await key.stored()).expiry).toMatchObject({
      holds: await redis.client.pexpiretime(holds).then((at) => at - key.startMillis),
      holdsByLapse: await redis.client.pexpiretime(holds).then((at) => at - key.startMillis),
    });
    await key.setTime(120_000);
    await many1.check(['x']);
    expect(await redis.client.exists(holds, holdsByLapse)).toBe(0);
  });

  test.each(['holds', 'holdsByLapse'] as const)(
    'is exact when Redis has lost %s alone',
    async (name) => {
      await redis.client.del(key.names[name]);
      await key.setTime(250);
      const held = name === 'holds' ? 0 : MANY - 2;
      expect(await many1.inspect()).toMatchObject({ held });
      await many1.check(['x']);
      expect(await counted()).toEqual({ approved: held + 1, held });
      await key.setTime(350);
      await many1.check(['y']);
      expect(await counted()).toEqual({
        approved: Math.max(0, held - 1) + 2,
        held: Math.max(0, held - 1),
      });
    },
  );

  test('is exact beside a replica that does not know of the order', async () => {
    const before = key.replica('r2', { ...many, replacements: beforeOrder() });
    // As many holds as before, others than the order has.
    await before.renewHold('first', { holdMillis: 30_000 });
    await before.renewHold('h7', { holdMillis: 150 });
    await before.release('third');
    await before.checkHold('other', 170);
    const heldAt = async (millis: number): Promise<unknown> => {
      await key.setTime(millis);
      return (await many1.inspect())?.held;
    };
    expect(await heldAt(149)).toBe(MANY + 1);
    expect(await heldAt(150)).toBe(MANY);
    await many1.renewHold('h0');
    expect(await heldAt(170)).toBe(MANY - 1);
    await many1.renewHold('h0');
    expect(await heldAt(200)).toBe(MANY - 3);
    await many1.renewHold('h0');
    // The order follows the holds again.
    const work = (): Promise<unknown> => heldAt(30_000);
    expect(await elementsRead(redis.client, key.names.holds, work)).toBe(2);
  });

  test('works as before for a user whose rules do not allow the order', async () => {
    const user = uniqueKey();
    const rules = limiterRules().filter((rule) => !rule.startsWith('+z'));
    await redis.client.call('ACL', 'SETUSER', user, 'on', 'nopass', ...rules);
    const client = redis.client.duplicate({ username: user, password: 'any' });
    try {
      const replica2 = key.replica('r2', { ...many, client });
      await replica2.release('first');
      await replica2.checkHold('other', 150);
      await key.setTime(200);
      expect(await replica2.inspect()).toMatchObject({ held: MANY - 2 });
      await replica2.check(['x']);
      expect(await counted()).toEqual({ approved: MANY - 1, held: MANY - 2 });
    } finally {
      client.disconnect();
      await redis.client.call('ACL', 'DELUSER', user);
      await redis.client.call('ACL', 'LOG', 'RESET');
    }
  });
});
