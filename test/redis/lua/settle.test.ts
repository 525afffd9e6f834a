import { TEST_KEPT_MILLIS, TEST_LEASE_MILLIS } from '../../support/script-harness.js';
import { useKeyWithWaiters } from '../../support/use-key-with-waiters.js';
import { useRedis } from '../../support/use-redis.js';
import { letThemWait } from '../../support/let-them-wait.js';

const redis = useRedis();
const { key, r1, r2, wakes } = useKeyWithWaiters(redis);

/** The reply about a key that Redis does not know. */
const OF_UNKNOWN_KEY = {
  ...{ millisToRoom: undefined, wakeNumber: 0, waiting: 0, places: 0, limits: '', used: 0, at: 0 },
  ...{ unclaimed: 0, putBack: [], granted: [], ended: [], holdsLeft: new Map() },
};

test('an unknown key is reported as unknown and not made', async () => {
  await key.lose();
  expect(await r1.settle()).toEqual(OF_UNKNOWN_KEY);
  expect((await key.stored()).expiry).toEqual({});
});

test('within the window the caller learns the state of the queue, and renews its lease alone', async () => {
  await key.setTime(999);
  const ofQueue = { waiting: 3, places: 2, limits: '1000:2:3', used: 2 };
  expect(await r1.settle()).toEqual({ ...OF_UNKNOWN_KEY, ...ofQueue, millisToRoom: 1, at: 999 });
  expect(await wakes.take()).toEqual([]);
  const expiresAt = 999 + TEST_KEPT_MILLIS;
  expect(await key.stored()).toMatchObject({
    replicas: { r1: 999 + TEST_LEASE_MILLIS, r2: TEST_LEASE_MILLIS },
    expiry: { state: expiresAt, requests: expiresAt, queue: expiresAt, replicas: expiresAt },
  });
});

describe('at the end of the window', () => {
  beforeEach(async () => {
    await key.setTime(1000);
  });

  test('the first call serves the queue, keeps its names and publishes one wake', async () => {
    expect(await r1.settle()).toMatchObject({
      millisToRoom: 1000,
      wakeNumber: 1,
      waiting: 1,
      places: 1,
      used: 2,
      at: 1000,
      granted: ['c', 'd'],
    });
    const keptUntil = 1000 + TEST_KEPT_MILLIS;
    const stored = await key.stored();
    expect(stored).toMatchObject({
      state: { start: 1000, denied: 0, expires: 5000 },
      expiry: { state: keptUntil, requests: keptUntil, queue: keptUntil, replicas: keptUntil },
    });
    expect(stored.replicas).toEqual({ r1: 6000 });
    await r2.settle();
    expect(await wakes.take()).toEqual([
      `{"at":${key.startMillis + 1000},"number":1,"millisToRoom":1000,"waiting":1,"waitingFrom":${key.absoluteTicket(3)},` +
        '"limits":"1000:2:3","max":2,"approved":2,"granted":["c","d"]}',
    ]);
  });

  test('a later caller learns of its own approvals only if it asks', async () => {
    await r1.settle();
    expect((await r2.settle()).granted).toEqual([]);
    expect((await r2.settle({ d: 2 })).granted).toEqual(['d']);
  });
});

describe('when Redis was down for longer than the leases', () => {
  const long = { limits: { windowMillis: 10_000 } };
  const [long1, long2] = [key.replica('r1', long), key.replica('r2', long)];
  beforeEach(async () => {
    await key.begin();
    await letThemWait(long1, long2);
    await key.setTime(12_000);
  });

  test('the waiters of a replica that has not come back by then are passed over', async () => {
    await long2.settle();
    await key.setTime(12_500);
    expect((await long2.settle()).granted).toEqual(['d']);
    expect((await key.stored()).state).toMatchObject({ approved: 1, holdUntil: 'no' });
  });

  test('the key also recovers if Redis went down in a recovery, and came back after it', async () => {
    await key.lose();
    await long2.settle({ d: 2 });
    await long1.settle({ c: 1, e: 3 });
    expect((await key.stored()).state).toMatchObject({ holdUntil: 12_500 });
    await key.setTime(20_000);
    expect(await long2.settle()).toMatchObject({ millisToRoom: 500, granted: [] });
    await long1.settle();
    await key.setTime(20_500);
    expect((await long2.settle()).granted).toEqual(['c', 'd']);
  });
});

describe("the number of the caller's places", () => {
  test('does not count those of other replicas, or withdrawn ones', async () => {
    expect([(await r1.settle()).places, (await r2.settle()).places]).toEqual([2, 1]);
    await r1.withdraw(['c']);
    expect((await r1.settle()).places).toBe(1);
  });

  test('shows that a failover has lost one', async () => {
    await key.begin();
    await r1.check(['a', 'b']);
    const copied = await redis.client.dumpBuffer(key.names.state);
    await key.setTime(10);
    await r1.checkOrWait(['c']);
    // The copy that is promoted has not seen the last call.
    await key.lose('queue', 'waiting', 'replicas');
    const expiresAt = key.startMillis + 4000;
    await redis.client.restore(key.names.state, expiresAt, copied, 'REPLACE', 'ABSTTL');
    await key.setTime(1000);
    expect(await r1.settle()).toMatchObject({ waiting: 0, places: 0, wakeNumber: 0 });
  });
});
