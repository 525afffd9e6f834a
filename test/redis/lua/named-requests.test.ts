import type { Algorithm } from '../../../src/limiter/limits.js';
import type { DeclaredLimits } from '../../support/limits.js';
import { TEST_LEASE_MILLIS, useScriptHarness, type Verdict } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder, type WakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const key = useScriptHarness(redis);
const r1 = key.replica('r1');
const r2 = key.replica('r2');
let wakes: WakeRecorder;
beforeEach(async () => {
  wakes = await recordWakes(key.names.wakeChannel);
});

/** A check whose caller has chosen its id. @param number of the check on its replica */
async function check(
  replica: typeof r1,
  requestId: string,
  number: number,
  terms: { readonly canWait?: boolean; readonly hits?: number; readonly holdMillis?: number } = {},
): Promise<Verdict | undefined> {
  const [verdict] = await replica.checkBatch([{ requestId, number, canWait: true, ...terms }]);
  return verdict;
}

/** The records of the requests that wait, and all outcomes. */
async function records(): Promise<Record<string, string>> {
  const all = await Promise.all(
    [key.names.records, ...key.names.outcomes].map((name) => redis.client.hgetall(name)),
  );
  return Object.assign({}, ...all) as Record<string, string>;
}

/** The claims that the wakes since the last call have told of. */
async function told(): Promise<unknown> {
  const all = (await wakes.take()).map((text) => JSON.parse(text) as Record<string, string[]>);
  return {
    granted: all.flatMap(({ granted = [] }) => granted),
    ended: all.flatMap(({ ended = [] }) => ended),
  };
}

async function fill(): Promise<void> {
  await r1.check(['f1', 'f2']);
}

test('requests with ids of Sluice have no records', async () => {
  await fill();
  await r1.checkOrWait(['a']);
  expect(await records()).toEqual({});
  expect(await redis.client.hget(key.names.state, 'named')).toBe('0');
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
    expect(await records()).toEqual({ a: '1:0:r2#7' });
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
    expect(await records()).toEqual({ a: 'approved:1:0:r2#7' });
    const asked = { 'a#1': ticket as number };
    expect(await r1.settle(asked)).toMatchObject({
      granted: [],
      ended: [{ claim: 'a#1', why: 'taken_over' }],
    });
    expect(await r2.settle({ 'a#7': ticket as number })).toMatchObject({ granted: ['a#7'] });
  });

  test('on the same replica is a check of its own', async () => {
    await check(r1, 'a', 2);
    expect(await told()).toEqual({ granted: [], ended: ['a#r1#1!taken_over'] });
    expect((await r1.settle()).places).toBe(2);
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

  test.each([
    ['hits', { hits: 2 }, 'other hits'],
    ['a hold', { holdMillis: 1000 }, 'other hold'],
  ])('is rejected with other terms: %s', async (_which, terms, verdict) => {
    const before = await key.stored();
    expect(await check(r2, 'a', 7, terms)).toBe(verdict);
    expect({ ...(await key.stored()), expiry: {} }).toEqual({ ...before, expiry: {} });
    expect(await records()).toEqual({ a: '1:0:r1#1' });
  });

  test('outlives a withdrawal of the earlier check', async () => {
    await check(r2, 'a', 7);
    await r1.withdraw(['a#1']);
    expect(await records()).toEqual({ a: '1:0:r2#7' });
    await r2.withdraw(['a#7']);
    expect(await records()).toEqual({});
    expect(await key.queued()).toEqual(['b@r1']);
  });
});

test('a place outlives the replica from which it was taken over', async () => {
  const limits = { windowMillis: 60_000 };
  const [dying, living] = [key.replica('r1', { limits }), key.replica('r2', { limits })];
  await living.check(['f1', 'f2']);
  await dying.checkOrWait(['b']);
  await check(dying, 'a', 1);
  await key.setTime(TEST_LEASE_MILLIS - 1000);
  await check(living, 'a', 7);
  await wakes.take();
  await key.setTime(TEST_LEASE_MILLIS + 1);
  await living.release('f1');
  expect(await told()).toEqual({ granted: ['a#r2#7'], ended: [] });
});

test('a place that a later check has ended is not put back, whatever is asked with its id then', async () => {
  await fill();
  const ticket = (await check(r1, 'a', 1)) as number;
  expect(await check(r2, 'a', 7, { canWait: false })).toBe('wait expired');
  expect(await check(r2, 'a', 8, { canWait: false })).toBe('denied');
  const { putBack, ended } = await r1.settle({ 'a#1': ticket });
  expect({ putBack, ended }).toMatchObject({ putBack: [], ended: [{ claim: 'a#1' }] });
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

  test('is new when its caller asks again', async () => {
    await check(r1, 'a', 2);
    expect(await key.queued()).toEqual(['a@r1']);
    expect(await r1.settle({ 'a#2': ticket })).toMatchObject({ granted: [], ended: [], places: 1 });
  });
});

describe('a check with the id of a request that is approved', () => {
  beforeEach(() => check(r1, 'a', 1));

  test('gets the same approval, and counts nothing', async () => {
    expect(await check(r2, 'a', 7)).toBe('approved');
    expect(await key.counted()).toEqual({ approved: 1, held: 0 });
  });

  test('and the earlier check do not give it back: the caller may use it', async () => {
    await check(r2, 'a', 7);
    await r1.withdraw(['a#1']);
    await r2.withdraw(['a#7']);
    expect(await key.counted()).toEqual({ approved: 1, held: 0 });
    expect(await records()).toEqual({ a: 'approved:1:0:r2#0' });
  });

  test('gives it back if its call was only sent again', async () => {
    await check(r1, 'a', 1);
    await r1.withdraw(['a#1']);
    expect(await key.counted()).toEqual({ approved: 0, held: 0 });
    expect(await records()).toEqual({});
  });

  test('is new after that', async () => {
    await r1.withdraw(['a#1']);
    expect(await check(r2, 'a', 7)).toBe('approved');
    expect(await key.counted()).toEqual({ approved: 1, held: 0 });
  });

  test('is rejected after a release', async () => {
    await r2.release('a');
    expect(await check(r2, 'a', 7)).toBe('id used');
    expect(await key.counted()).toEqual({ approved: 0, held: 0 });
  });

  test('gets it in the three windows after its own, and then another one', async () => {
    const replica = key.replica('r1', { leaseMillis: 1000 });
    await replica.check(['of window 0']);
    for (const window of [1, 2, 3]) {
      await key.setTime(window * 1000);
      await replica.check([`of window ${window}`]);
      expect(await records()).toEqual({ a: 'approved:1:0:r1#1' });
    }
    expect(await check(replica, 'a', 2)).toBe('approved');
    expect(await key.counted()).toEqual({ approved: 1, held: 0 });
    // The answer was a change of the record.
    for (const window of [4, 5, 6, 7]) {
      await key.setTime(window * 1000);
      expect(await records()).toEqual({ a: 'approved:1:0:r1#0' });
      await replica.check([`of window ${window}`]);
    }
    expect(await records()).toEqual({});
    expect(await redis.client.hget(key.names.state, 'named')).toBeNull();
    expect(await check(replica, 'a', 3)).toBe('approved');
    expect(await key.counted()).toEqual({ approved: 2, held: 0 });
  });
});

test('a check with the id of a hold that has lapsed is rejected', async () => {
  await check(r1, 'a', 1, { holdMillis: 1000 });
  expect(await check(r1, 'a', 2, { holdMillis: 1000 })).toBe('approved');
  await key.setTime(1001);
  expect(await check(r1, 'a', 3, { holdMillis: 1000 })).toBe('id used');
});

test('two checks with one id in a batch are one approval', async () => {
  const named = { requestId: 'a', canWait: false };
  const verdicts = await r1.checkBatch([
    { ...named, number: 1 },
    { ...named, number: 2 },
  ]);
  expect(verdicts).toEqual(['approved', 'approved']);
  expect(await key.counted()).toEqual({ approved: 1, held: 0 });
});

describe('a check that ends the wait of the head, which needs more than is left,', () => {
  const endsWait = { requestId: 'a', number: 2, canWait: false, hits: 2 };
  beforeEach(async () => {
    await r1.check(['f1']);
    await check(r1, 'a', 1, { hits: 2 });
  });

  test('leaves what is left to the next check of its batch', async () => {
    const next = { requestId: 'b', canWait: false };
    expect(await r1.checkBatch([endsWait, next])).toEqual(['wait expired', 'approved']);
  });

  test('leaves it to the next waiter before that', async () => {
    await r1.checkOrWait(['w']);
    await wakes.take();
    const next = { requestId: 'b', canWait: false };
    expect(await r1.checkBatch([endsWait, next])).toEqual(['wait expired', 'denied']);
    expect(await told()).toEqual({ granted: ['w'], ended: ['a#r1#1!taken_over'] });
  });
});

test('a token bucket of which nobody waits any more has no credit for the next check of the batch', async () => {
  const bucket: DeclaredLimits['further'] = [
    {
      name: 'a',
      windowMillis: 40,
      maximum: 4,
      counts: 'requests',
      keepsReleased: false,
      algorithm: { name: 'token_bucket', burst: 2 },
    },
  ];
  const replica = key.replica('r1', { limits: { maxRequests: 10, further: bucket } });
  await replica.checkBatch([{ requestId: 'f', canWait: false, hits: 7 }]);
  await check(replica, 'a', 1, { hits: 4 });
  // Meanwhile the bucket drains by more than it has.
  await key.setTime(30);
  const checks = ['b', 'c', 'd'].map((requestId) => ({ requestId, canWait: false }));
  const endsWait = { requestId: 'a', number: 2, canWait: false, hits: 4 };
  expect(await replica.checkBatch([endsWait, ...checks])).toEqual([
    'wait expired',
    'approved',
    'approved',
    'denied',
  ]);
});

test('a place that is put back after a loss has its owner again', async () => {
  await fill();
  const ticket = (await check(r1, 'a', 1)) as number;
  await key.lose('state', 'requests', 'queue', 'waiting', 'replicas');
  await redis.client.del(key.names.records);
  expect(await r1.settle({ 'a#1': ticket }, 500)).toMatchObject({ putBack: ['a#1'] });
  expect(await records()).toEqual({ a: '1:0:r1#1' });
  expect(await check(r2, 'a', 7)).toBe(ticket);
});

test.each<[when: string, millis: number, limit: string, algorithm: Algorithm]>([
  ['at once', 0, 'a sliding window', { name: 'sliding_window', steps: 4 }],
  ['when it counts no more', 1300, 'a sliding window', { name: 'sliding_window', steps: 4 }],
  ['at once', 0, 'a token bucket', { name: 'token_bucket', burst: 2 }],
  ['when it counts no more', 1300, 'a token bucket', { name: 'token_bucket', burst: 2 }],
])('a request that was given back %s (%d ms) is new in %s', async (_w, millis, _l, algorithm) => {
  const replica = key.replica('r1', { limits: { algorithm, maxRequests: 2 } });
  expect(await check(replica, 'a', 1)).toBe('approved');
  await key.setTime(millis);
  await replica.withdraw(['a#1']);
  expect(await check(replica, 'a', 2)).toBe('approved');
  expect(await replica.check(['b', 'c'])).toEqual(['approved', 'denied']);
});
