import { ScriptHarness, TEST_KEPT_MILLIS, type TestReplica } from '../../support/script-harness.js';
import { unguarded } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder, type WakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

let key: ScriptHarness;
let replica: TestReplica;
let wakes: WakeRecorder;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1');
  wakes = await recordWakes(key.names.wakeChannel);
});

test('releases an approval', async () => {
  await replica.check(['a', 'b']);
  expect(await replica.release('a')).toBe(true);
  expect(await key.stored()).toMatchObject({
    state: { start: 0, approved: 1, denied: 0, expires: 4000 },
    requests: ['b'],
    expiry: { state: 11_000, requests: 11_000 },
  });
  expect(await replica.check(['c', 'd'])).toEqual(['approved', 'denied']);
});

test('releases the last approval, and the next one is counted again', async () => {
  await replica.check(['a']);
  expect(await replica.release('a')).toBe(true);
  expect(await key.stored()).toMatchObject({
    state: { approved: 0 },
    requests: [],
    expiry: { state: 11_000 },
  });
  await replica.check(['b']);
  expect(await key.stored()).toMatchObject({
    state: { approved: 1 },
    requests: ['b'],
    expiry: { state: 11_000, requests: 11_000 },
  });
});

test('in a later window leaves the key as it is after a check, once the next has come', async () => {
  const fields = async (): Promise<string[]> =>
    Object.keys(await redis.client.hgetall(key.names.state)).sort();
  await replica.check(['a']);
  const after = await fields();
  await key.setTime(1000);
  expect(await replica.release('a')).toBe(false);
  expect(await fields()).toContain('more');
  await replica.check(['b']);
  expect(await fields()).toEqual(after);
});

test('finds an approval until the last millisecond of its window', async () => {
  await replica.check(['a']);
  await key.setTime(999);
  expect(await replica.release('a')).toBe(true);
});

describe('finds nothing and changes nothing', () => {
  test.each([
    ['that was released before', 'a'],
    ['that is unknown', 'unknown'],
    ['that waits', 'd'],
    ['that is empty', ''],
  ])('for an id %s', async (_which, requestId) => {
    await replica.check(['a', 'b', 'c']);
    await replica.release('a');
    await replica.checkOrWait(['c', 'd']);
    const before = await key.stored();
    expect(await replica.release(requestId)).toBe(false);
    expect(await key.stored()).toEqual(before);
    expect(await wakes.take()).toEqual([]);
  });

  test('for an id of another key', async () => {
    const other = await ScriptHarness.create(redis.client);
    await other.replica('r1').check(['x']);
    await replica.check(['a']);
    expect(await replica.release('x')).toBe(false);
    expect((await other.stored()).requests).toEqual(['x']);
  });
});

test('finds nothing for an unknown key, and makes none', async () => {
  expect(await replica.release('a')).toBe(false);
  expect(await key.stored()).toEqual({
    state: undefined,
    requests: [],
    pastRequests: [],
    queue: [],
    withdrawnEntries: 0,
    replicas: {},
    expiry: {},
  });
});

test.each([1000, 1999, 3999])(
  'finds nothing at %d ms for an id of an earlier window',
  async (now) => {
    await replica.check(['a', 'b']);
    await key.setTime(now);
    expect(await replica.release('a')).toBe(false);
    expect((await key.stored()).state).toMatchObject({ approved: 0, denied: 0, expires: 4000 });
    expect(await replica.check(['c', 'd', 'e'])).toEqual(['approved', 'approved', 'denied']);
  },
);

describe('while others wait', () => {
  beforeEach(async () => {
    await replica.check(['a', 'b']);
    await key.replica('r2').checkOrWait(['c']);
    await replica.checkOrWait(['d']);
    await key.setTime(10);
  });

  test('serves the head of the queue, and publishes one wake', async () => {
    expect(await replica.release('a')).toBe(true);
    const keptUntil = 10 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toMatchObject({
      state: { approved: 2 },
      requests: ['b', 'c'],
      queue: [['d@r1', 2]],
      expiry: { state: keptUntil, requests: keptUntil, queue: keptUntil, replicas: keptUntil },
    });
    expect(await wakes.take()).toEqual([
      `{"at":${key.startMillis + 10},"number":1,"millisToRoom":990,"waiting":1,"waitingFrom":${key.absoluteTicket(2)},` +
        '"limits":"1000:2:3","max":2,"approved":2,"granted":["c"]}',
    ]);
  });

  test('says that nobody waits after the last waiter, and drops the leases', async () => {
    await replica.release('a');
    await replica.release('c');
    expect(await key.stored()).toMatchObject({
      requests: ['b', 'd'],
      queue: [],
      replicas: {},
      // After an outage replicas may ask about approvals from the queue.
      expiry: { state: 30_010, requests: 30_010 },
    });
    expect((await wakes.take()).at(-1)).toBe(
      `{"at":${key.startMillis + 10},"number":2,"millisToRoom":990,"waiting":0,"waitingFrom":${key.absoluteTicket(10_000)},` +
        '"limits":"1000:2:3","max":2,"approved":2,"granted":["d"]}',
    );
  });

  test('serves the head with the only approval of the window', async () => {
    await replica.check(['x'], { maxRequests: 1 });
    await replica.release('a');
    expect(await wakes.take()).toEqual([]);
    await replica.release('b');
    expect(await key.stored()).toMatchObject({ state: { approved: 1 }, requests: ['c'] });
    expect(await wakes.take()).toHaveLength(1);
  });

  test('serves the queue from the next window if that has begun', async () => {
    await key.setTime(1000);
    expect(await replica.release('a')).toBe(false);
    expect(await key.stored()).toMatchObject({
      state: { start: 1000, approved: 2, expires: 5000 },
      requests: ['c', 'd'],
      queue: [],
    });
    expect(await wakes.take()).toEqual([
      `{"at":${key.startMillis + 1000},"number":1,"millisToRoom":1000,"waiting":0,"waitingFrom":${key.absoluteTicket(1_000_000)},` +
        '"limits":"1000:2:3","max":2,"approved":2,"granted":["c","d"]}',
    ]);
  });
});

test('passes over the waiters of a replica whose lease ran out, without using capacity', async () => {
  const long = { limits: { windowMillis: 60_000 } };
  const [dead, living] = [key.replica('dead', long), key.replica('living', long)];
  await dead.check(['a', 'b']);
  await dead.checkOrWait(['c', 'd']);
  await key.setTime(3000);
  await living.checkOrWait(['e']);
  await key.setTime(5000);
  expect(await living.release('a')).toBe(true);
  expect(await key.stored()).toMatchObject({
    state: { approved: 2 },
    requests: ['b', 'e'],
    queue: [],
    replicas: {},
  });
  expect((await wakes.take()).map((wake) => JSON.parse(wake) as unknown)).toMatchObject([
    { granted: ['e'], waiting: 0 },
  ]);
});

test('many releases leave no more ids than three sets may hold', async () => {
  const replica = key.replica('r1', { maxIdsPerKey: 5 });
  for (let i = 0; i < 50; i += 1) {
    await replica.check([`id${i}`]);
    expect(await replica.release(`id${i}`)).toBe(true);
  }
  const { pastRequests } = await key.stored();
  expect(pastRequests.length).toBeLessThanOrEqual(15);
  expect(pastRequests).toContain('id49');
});

test('may not be sent again once it may have run, since it would not find its approval', async () => {
  const repeatable: boolean[] = [];
  const guard: typeof unguarded = {
    ...unguarded,
    run: (call) => {
      repeatable.push(call.isRepeatable);
      return unguarded.run(call);
    },
  };
  const watched = key.replica('r1', { guard });
  await watched.check(['a']);
  expect(await watched.release('a')).toBe(true);
  expect(repeatable).toEqual([true, false]);
});
