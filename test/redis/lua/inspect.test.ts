import { ownLimit } from '../../../src/limiter/limits.js';
import { ScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1');
});

/** 2 approved, 1 denied, 2 waiting. */
async function fill(): Promise<void> {
  await replica.check(['a', 'b', 'x']);
  await replica.checkOrWait(['c', 'd']);
}

test('finds nothing if there is no key', async () => {
  expect(await replica.inspect()).toBeUndefined();
  expect((await key.stored()).expiry).toEqual({});
});

test('reports the limits and counts of the window', async () => {
  await fill();
  await key.setTime(999);
  expect(await replica.inspect()).toEqual({
    limits: [{ ...ownLimit(1000, 2), used: 2, millisToWindowEnd: 1 }],
    maxRequestsInQueue: 3,
    used: 2,
    held: 0,
    denied: 1,
    waiting: 2,
    pausedMillis: 0,
  });
});

test('reports a window that has ended as empty, with its waiters', async () => {
  await fill();
  await key.setTime(1000);
  expect(await replica.inspect()).toEqual({
    limits: [{ ...ownLimit(1000, 2), used: 0, millisToWindowEnd: 1000 }],
    maxRequestsInQueue: 3,
    used: 0,
    held: 0,
    denied: 0,
    waiting: 2,
    pausedMillis: 0,
  });
});

test.each([-1, -50_000])(
  'reports a window that begins now after the clock has gone back to %d, and a pause of its length',
  async (now) => {
    await fill();
    await replica.pause(400);
    await key.setTime(now);
    const limits = [{ used: 2, millisToWindowEnd: 1000 }];
    const expected = { limits, held: 0, denied: 1, waiting: 2, pausedMillis: 400 };
    expect(await replica.inspect()).toMatchObject(expected);
    expect(await replica.examine()).toMatchObject(expected);
  },
);

test('reports the limits that the last check left', async () => {
  await replica.check(['a'], { maxRequests: 7 });
  const changed = key.replica('r2', { limits: { maxRequestsInQueue: 9 } });
  const limits = [{ windowMillis: 1000, maximum: 7 }];
  expect(await changed.inspect()).toMatchObject({ limits, maxRequestsInQueue: 3 });
  await changed.check(['b']);
  expect(await changed.inspect()).toMatchObject({ limits, maxRequestsInQueue: 9 });
});

test('does not count the waiters of replicas whose lease ran out', async () => {
  await fill();
  await key.setTime(3000);
  await key.replica('r2', { limits: { maxRequests: 1 } }).settle();
  // The window's end has served c and d.
  await replica.checkOrWait(['e', 'f']);
  await key.setTime(3500);
  await key.replica('r2').checkOrWait(['g']);
  await key.setTime(7999);
  expect(await replica.inspect()).toMatchObject({ waiting: 3 });
  await key.setTime(8000);
  expect(await replica.inspect()).toMatchObject({ waiting: 1 });
});

test('finds a key until the end of the third window without a check', async () => {
  await replica.check(['a']);
  await key.setTime(3999);
  expect(await replica.inspect()).toMatchObject({ used: 0 });
  await key.setTime(4000);
  expect(await replica.inspect()).toBeUndefined();
});

test('finds a key with waiters as long as the lease runs', async () => {
  await fill();
  await key.setTime(4999);
  expect(await replica.inspect()).toMatchObject({
    used: 0,
    held: 0,
    denied: 0,
    waiting: 2,
    pausedMillis: 0,
  });
  await key.setTime(5000);
  expect(await replica.inspect()).toBeUndefined();
});

describe('writes nothing', () => {
  async function dump(): Promise<unknown[]> {
    const { state, requests, queue, replicas } = key.names;
    const contents = [state, requests, queue, replicas].map((name) =>
      redis.client.dumpBuffer(name).then((bytes) => bytes.toString('hex')),
    );
    return [await key.expiry(), ...(await Promise.all(contents))];
  }

  test.each([
    ['within the window', 500],
    ['after the end of the window', 1000],
    ['when the leases have run out', 5000],
    ['when the key is idle', 50_000],
    ['when the clock has gone back', -50_000],
  ])('%s', async (_when, now) => {
    await fill();
    await key.setTime(now);
    const before = await dump();
    expect(before).toHaveLength(5);
    expect(before).not.toContain(undefined);
    await replica.inspect();
    expect(await dump()).toEqual(before);
  });
});
