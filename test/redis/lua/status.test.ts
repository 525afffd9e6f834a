import type { RequestStatus } from '../../../src/limiter/limiter.js';
import { contentsOfKey } from '../../support/key-contents.js';
import {
  TEST_LEASE_MILLIS,
  type TestReplica,
  useScriptHarness,
} from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const WINDOW = 60_000;
/** The first entries, as many as this, are read one by one. */
const WALKED = 1000;
const limits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 9000 };
const APPROVED = { status: 'approved' };

const key = useScriptHarness(redis);
const r1 = key.replica('r1', { limits });
const r2 = key.replica('r2', { limits });

/** Asks for a status, which must leave everything as it is. */
async function statusOf(replica: TestReplica, id: string): Promise<RequestStatus | undefined> {
  const before = await contentsOfKey(redis.client, key.names.state);
  const status = await replica.status(id);
  expect(await contentsOfKey(redis.client, key.names.state)).toEqual(before);
  return status;
}

async function positionOf(id: string): Promise<number | undefined> {
  const status = await statusOf(r1, id);
  return status?.status === 'waiting' ? status.position : undefined;
}

/** Lets requests wait whose callers have chosen their ids. */
async function waitNamed(replica: TestReplica, ...ids: readonly string[]): Promise<void> {
  await replica.checkBatch(
    ids.map((requestId, i) => ({ requestId, number: i + 1, canWait: true })),
  );
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `w${i}`);

test('a key that does not exist has no requests, and is not created', async () => {
  expect(await statusOf(r1, 'a')).toBeUndefined();
  expect((await key.stored()).expiry).toEqual({});
});

test('a place that another replica has taken over is where it was', async () => {
  await r1.check(['f1', 'f2']);
  await waitNamed(r1, 'a', 'b', 'c');
  await waitNamed(r2, 'b');
  expect(await Promise.all(['a', 'b', 'c'].map(positionOf))).toEqual([1, 2, 3]);
});

test('waiters of a dead replica are not before others, and those that another has taken over are', async () => {
  await r1.check(['f1', 'f2']);
  await waitNamed(r1, 'a', 'b');
  await waitNamed(r2, 'c');
  await waitNamed(r2, 'b');
  await key.setTime(TEST_LEASE_MILLIS / 2);
  await r2.settle();
  await key.setTime(TEST_LEASE_MILLIS - 1);
  expect(await positionOf('c')).toBe(3);
  await key.setTime(TEST_LEASE_MILLIS);
  expect(await Promise.all(['b', 'c'].map(positionOf))).toEqual([1, 2]);
  expect(await positionOf('a')).toBe(1);
});

test('while a key recovers, all replicas count, and the turn comes after that', async () => {
  const short = { windowMillis: 6000, maxRequests: 1 };
  const silent = key.replica('silent', { limits: short });
  await silent.check(['f1']);
  await waitNamed(silent, 'a', 'b');
  await key.setTime(6000);
  const other = key.replica('other', { limits: short, history: {} });
  await other.check(['x']);
  expect((await key.stored()).state).toMatchObject({ holdUntil: 6500 });
  expect(await statusOf(other, 'b')).toEqual({ status: 'waiting', position: 2, waitMillis: 6000 });
});

test('a list that is out of order has places by its tickets', async () => {
  await r1.check(['f1', 'f2']);
  await waitNamed(r1, 'a');
  await key.setTime(10);
  await waitNamed(r2, 'b', 'c');
  // This is the state after a failover that lost the place of a.
  await redis.client.hdel(key.names.waiting, 'a');
  await redis.client.hdel(key.names.replicas, 'r1');
  await redis.client.lpop(key.names.queue);
  await r1.settle({ 'a#1': 1 });
  expect(await key.queued()).toEqual(['b@r2', 'c@r2', 'a@r1']);
  expect(await Promise.all(['a', 'b', 'c'].map(positionOf))).toEqual([1, 2, 3]);
});

test('waiters whose turn has come are served first, in the estimate and nowhere else', async () => {
  const replica = key.replica('r1', { limits: { windowMillis: 1000, maxRequestsInQueue: 9 } });
  await replica.check(['f1', 'f2']);
  await waitNamed(replica, 'a', 'b', 'c');
  await waitNamed(replica, 'd', 'e');
  await key.setTime(1000);
  expect(await Promise.all(['a', 'b', 'c', 'd', 'e'].map((id) => statusOf(replica, id)))).toEqual([
    { status: 'waiting', position: 1, waitMillis: 0 },
    { status: 'waiting', position: 2, waitMillis: 0 },
    { status: 'waiting', position: 3, waitMillis: 1000 },
    { status: 'waiting', position: 4, waitMillis: 1000 },
    { status: 'waiting', position: 5, waitMillis: 2000 },
  ]);
});

test('several requests in one call each have their own status', async () => {
  await r1.check(['f1']);
  await r1.checkBatch([{ requestId: 'approved', number: 7, canWait: false }]);
  await waitNamed(r1, 'a', 'b');
  expect(await r1.statuses(['b', 'unknown', 'approved', 'a'])).toMatchObject([
    { status: 'waiting', position: 2 },
    undefined,
    APPROVED,
    { status: 'waiting', position: 1 },
  ]);
});

describe('in a long queue', () => {
  const named = [0, 1, WALKED, WALKED + 1, 2500, 4999];
  beforeEach(async () => {
    await r1.check(['f1', 'f2']);
    const isNamed = new Set(named.map((i) => `w${i}`));
    await r1.checkBatch(
      ids(5000).map((requestId) => ({
        requestId,
        canWait: true,
        number: isNamed.has(requestId) ? 1 : undefined,
      })),
    );
  });
  const positions = () => Promise.all(named.map((i) => positionOf(`w${i}`)));

  test('every place is exact while nobody has left', async () => {
    expect(await positions()).toEqual(named.map((i) => i + 1));
  });

  test('withdrawn requests do not count among the first 1000, and count behind them', async () => {
    await r1.withdraw(['w2', 'w500', 'w999', 'w1002', 'w2000']);
    const expected = [1, 2, WALKED - 2, WALKED - 1, 2498, 4997];
    expect(await positions()).toEqual(expected);
    const together = await r1.statuses(named.map((i) => `w${i}`));
    expect(together).toMatchObject(expected.map((position) => ({ status: 'waiting', position })));
  });
});

describe('an approval', () => {
  test('of an id without a record counts in its window, also before anybody has ended that', async () => {
    await r1.check(['a']);
    await key.setTime(WINDOW - 1);
    expect(await statusOf(r2, 'a')).toEqual(APPROVED);
    await key.setTime(WINDOW);
    expect(await statusOf(r2, 'a')).toBeUndefined();
  });

  test('of an idle key is remembered with its record', async () => {
    const short = key.replica('r1', { limits: { windowMillis: 1000 } });
    await short.checkBatch([{ requestId: 'a', number: 1, canWait: false }]);
    await short.check(['b']);
    await key.setTime(4000);
    expect(await short.inspect()).toBeUndefined();
    expect([await statusOf(short, 'a'), await statusOf(short, 'b')]).toEqual([APPROVED, undefined]);
  });

  test('that was given back is unknown', async () => {
    await r1.checkBatch([{ requestId: 'a', number: 1, canWait: false }]);
    await r1.withdraw(['a#1']);
    expect(await statusOf(r1, 'a')).toBeUndefined();
  });

  test('that is held is not held for longer after the clock has gone back', async () => {
    await r1.checkHold('a', 5000);
    await key.setTimeInSilence(-60_000);
    expect(await statusOf(r1, 'a')).toEqual({ ...APPROVED, holdMillis: 5000 });
  });

  test('is over once its hold has lapsed, also before anybody has noticed', async () => {
    await r1.checkHold('a', 5000);
    await r1.checkHold('b', 5000, { number: 1 });
    await key.setTime(4999);
    const held = { ...APPROVED, holdMillis: 1 };
    expect([await statusOf(r1, 'a'), await statusOf(r1, 'b')]).toEqual([held, held]);
    await key.setTime(5000);
    expect([await statusOf(r1, 'a'), await statusOf(r1, 'b')]).toEqual([undefined, undefined]);
  });
});
