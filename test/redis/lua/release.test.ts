import { useScriptHarness, TEST_KEPT_MILLIS } from '../../support/script-harness.js';
import { unguarded } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder, type WakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const key = useScriptHarness(redis);
const replica = key.replica('r1');
let wakes: WakeRecorder;
beforeEach(async () => {
  wakes = await recordWakes(key.names.wakeChannel);
});

test('a release of the last approval removes the name of the ids, which the next makes again', async () => {
  await replica.check(['a']);
  expect(await replica.release('a')).toBe(true);
  expect((await key.stored()).expiry).toEqual({ state: 11_000 });
  await replica.check(['b']);
  expect(await key.stored()).toMatchObject({
    requests: ['b'],
    expiry: { state: 11_000, requests: 11_000 },
  });
});

test('a release in a later window leaves the key as it is after a check, once the next has come', async () => {
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

test.each([
  ['was released before', 'a'],
  ['is unknown', 'unknown'],
  ['waits', 'd'],
  ['is empty', ''],
])('a release of an id that %s changes nothing, and wakes nobody', async (_which, requestId) => {
  await replica.check(['a', 'b', 'c']);
  await replica.release('a');
  await replica.checkOrWait(['c', 'd']);
  const before = await key.stored();
  expect(await replica.release(requestId)).toBe(false);
  expect(await key.stored()).toEqual(before);
  expect(await wakes.take()).toEqual([]);
});

test('a release in an unknown key makes none', async () => {
  expect(await replica.release('a')).toBe(false);
  expect((await key.stored()).expiry).toEqual({});
});

describe('a release while others wait', () => {
  beforeEach(async () => {
    await replica.check(['a', 'b']);
    await key.replica('r2').checkOrWait(['c']);
    await replica.checkOrWait(['d']);
    await key.setTime(10);
  });

  const wake = (fields: string): string => `{"at":${key.startMillis + 10},${fields}}`;

  test('publishes one wake, and keeps all names for the next waiter', async () => {
    await replica.release('a');
    const keptUntil = 10 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toMatchObject({
      requests: ['b', 'c'],
      queue: [['d@r1', 2]],
      expiry: { state: keptUntil, requests: keptUntil, queue: keptUntil, replicas: keptUntil },
    });
    expect(await wakes.take()).toEqual([
      wake(
        `"number":1,"millisToRoom":990,"waiting":1,"waitingFrom":${key.absoluteTicket(2)},` +
          '"limits":"1000:2:3","max":2,"approved":2,"granted":["c"]',
      ),
    ]);
  });

  test('says that nobody waits after the last waiter, and drops the leases', async () => {
    await replica.release('a');
    await replica.release('c');
    expect(await key.stored()).toMatchObject({
      queue: [],
      replicas: {},
      // After an outage replicas may ask about approvals from the queue.
      expiry: { state: 30_010, requests: 30_010 },
    });
    expect((await wakes.take()).at(-1)).toBe(
      wake(
        `"number":2,"millisToRoom":990,"waiting":0,"waitingFrom":${key.absoluteTicket(10_000)},` +
          '"limits":"1000:2:3","max":2,"approved":2,"granted":["d"]',
      ),
    );
  });

  test('wakes nobody if it makes no room', async () => {
    await replica.check(['x'], { maxRequests: 1 });
    await replica.release('a');
    expect(await wakes.take()).toEqual([]);
    await replica.release('b');
    expect(await wakes.read()).toMatchObject([{ granted: ['c'] }]);
  });
});

test('a release passes over the waiters of a replica whose lease ran out, without using capacity', async () => {
  const long = { limits: { windowMillis: 60_000 } };
  const [dead, living] = [key.replica('dead', long), key.replica('living', long)];
  await dead.check(['a', 'b']);
  await dead.checkOrWait(['c', 'd']);
  await key.setTime(3000);
  await living.checkOrWait(['e']);
  await key.setTime(5000);
  expect(await living.release('a')).toBe(true);
  const stored = await key.stored();
  expect(stored).toMatchObject({ state: { approved: 2 }, requests: ['b', 'e'], queue: [] });
  expect(stored.replicas).toEqual({});
  expect(await wakes.read()).toMatchObject([{ granted: ['e'], waiting: 0 }]);
});

test('many releases leave no more ids than three sets may hold', async () => {
  const bounded = key.replica('r1', { maxIdsPerKey: 5 });
  for (let i = 0; i < 50; i += 1) {
    await bounded.check([`id${i}`]);
    expect(await bounded.release(`id${i}`)).toBe(true);
  }
  const { pastRequests } = await key.stored();
  expect(pastRequests.length).toBeLessThanOrEqual(15);
  expect(pastRequests).toContain('id49');
});

test('a release may not be sent again once it may have run, since it would not find its approval', async () => {
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
