import { useScriptHarness, TEST_KEPT_MILLIS } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const key = useScriptHarness(redis);
// Three windows are no shorter than this lease, so nothing outlives them.
const replica = key.replica('r1', { leaseMillis: 3000 });

const LAST_MILLISECOND = 3999;
const END_OF_THIRD_IDLE_WINDOW = 4000;

describe.each([
  ['release', () => replica.release('a')],
  ['settle', () => replica.settle()],
  ['withdraw', () => replica.withdraw(['a'])],
])('%s', (_script, call) => {
  beforeEach(async () => {
    await key.setTime(0);
    await replica.check(['a']);
  });

  test('finds the key in the last millisecond of the third window without a check', async () => {
    await key.setTime(LAST_MILLISECOND);
    await call();
    expect((await key.stored()).state).toMatchObject({ start: 3000, approved: 0, expires: 4000 });
  });

  test('removes the key at the end of that window, although Redis still has it', async () => {
    expect((await key.stored()).state).toBeDefined();
    await key.setTime(END_OF_THIRD_IDLE_WINDOW);
    await call();
    expect((await key.stored()).expiry).toEqual({});
  });

  test('does not keep the key', async () => {
    for (const now of [1500, 2500, LAST_MILLISECOND]) {
      await key.setTime(now);
      await call();
    }
    expect((await key.stored()).expiry.state).toBe(END_OF_THIRD_IDLE_WINDOW);
    await key.setTime(END_OF_THIRD_IDLE_WINDOW);
    await call();
    expect((await key.stored()).expiry).toEqual({});
  });
});

describe('a check', () => {
  test('in the last millisecond keeps the key, its anchor and its overrides', async () => {
    await replica.check(['a'], { maxRequests: 7 });
    await key.setTime(LAST_MILLISECOND);
    await replica.check(['b']);
    expect(await key.stored()).toMatchObject({
      state: { start: 3000, max: 7, approved: 1, expires: 7000 },
      expiry: { state: 7000, requests: 7000 },
    });
  });

  test('at the end of the third window without one makes the key again', async () => {
    await replica.check(['a']);
    await key.setTime(END_OF_THIRD_IDLE_WINDOW);
    await replica.check(['b']);
    expect((await key.stored()).state).toMatchObject({ start: 4000, limitsSince: 4000 });
  });

  test('half a window later makes the key again, with a window that begins then', async () => {
    await replica.check(['a'], { maxRequests: 7 });
    await key.setTime(END_OF_THIRD_IDLE_WINDOW + 500);
    await replica.check(['b']);
    expect(await key.stored()).toMatchObject({
      state: { start: 4500, max: 2, approved: 1, expires: 8500, overridden: [] },
      requests: ['b'],
      expiry: { state: 8500, requests: 8500 },
    });
  });

  test('that is denied keeps the key', async () => {
    await replica.check(['a', 'b']);
    await key.setTime(1000);
    await replica.check(['c', 'd', 'e']);
    await key.setTime(4500);
    expect(await replica.inspect()).toBeDefined();
    await key.setTime(5000);
    expect(await replica.inspect()).toBeUndefined();
  });

  test('that only finds the window full keeps the key', async () => {
    await replica.check(['a'], { maxRequests: 1 });
    await key.setTime(500);
    await replica.checkOrWait(['w']);
    await key.setTime(3000);
    await replica.settle();
    await key.setTime(3500);
    expect(await replica.check(['b'])).toEqual(['denied']);
    expect((await key.stored()).state).toMatchObject({ start: 3000, expires: 7000 });
  });
});

describe('waiters', () => {
  test('keep the key for as long as the lease runs', async () => {
    const patient = key.replica('r1', { leaseMillis: 20_000 });
    await patient.check(['a', 'b']);
    await patient.checkOrWait(['c']);
    await key.setTime(19_999);
    expect((await patient.settle()).waiting).toBe(1);
    await key.setTime(20_499);
    expect((await patient.settle()).granted).toEqual(['c']);
    expect((await key.stored()).state).toMatchObject({ start: 20_000, expires: 24_000 });
  });

  test('keep the key alive in Redis for 21 leases, however short the windows', async () => {
    const quick = key.replica('r1', { limits: { windowMillis: 1, maxRequests: 1 } });
    await quick.check(['a']);
    await quick.checkOrWait(['b']);
    expect((await key.stored()).expiry).toEqual({
      state: TEST_KEPT_MILLIS,
      requests: TEST_KEPT_MILLIS,
      queue: TEST_KEPT_MILLIS,
      waiting: TEST_KEPT_MILLIS,
      replicas: TEST_KEPT_MILLIS,
    });
  });

  test('do not keep the key if all their replicas are dead', async () => {
    const brief = key.replica('r1', { leaseMillis: 500 });
    await brief.check(['a', 'b']);
    await brief.checkOrWait(['c']);
    await key.setTime(END_OF_THIRD_IDLE_WINDOW);
    await key.replica('r2', { leaseMillis: 500 }).release('unknown');
    await key.setTime(8000);
    expect(await key.replica('r2', { leaseMillis: 500 }).settle()).toMatchObject({
      millisToRoom: undefined,
    });
    expect((await key.stored()).expiry).toEqual({});
  });

  test('that were put back keep the window in which they were served', async () => {
    const changed = key.replica('r2', { limits: { windowMillis: 60_000 } });
    await replica.check(['a'], { maxRequests: 1 });
    await key.setTime(3500);
    expect(await changed.settle({ lost: 1 })).toMatchObject({
      millisToRoom: 59_500,
      granted: ['lost'],
    });
    await key.setTime(END_OF_THIRD_IDLE_WINDOW);
    expect(await changed.check(['b'])).toEqual(['denied']);
  });
});

test('a key in a recovery hold is not idle, however short its windows', async () => {
  const limits = { windowMillis: 20, maxRequests: 1 };
  const [r1, r2] = [key.replica('r1', { limits }), key.replica('r2', { limits })];
  await key.setTime(10);
  await r2.check(['newcomer']);
  // Redis has lost the queue, so other replicas may still put their waiters back.
  await r1.settle({ lost: 1 }, 20);
  await r1.withdraw(['lost']);
  await key.setTime(400);
  expect(await r2.check(['overtaking'])).toEqual(['denied']);
  await key.setTime(510);
  expect(await r2.check(['later'])).toEqual(['approved']);
});

test('a replica that missed an approval does not take a removed idle key for lost', async () => {
  const limits = { windowMillis: 5, maxRequests: 1 };
  const late = key.replica('r1', { limits });
  await late.check(['a']);
  const [lowestTicket] = (await late.checkOrWait(['b'])) as number[];
  await key.setTime(5);
  expect(await key.replica('r2', { limits }).settle()).toMatchObject({ granted: ['b'] });
  await key.setTime(30);
  const known = { lowestTicket: lowestTicket!, millisToWindowEnd: 0 };
  const check = { requestId: 'c', canWait: false };
  expect(await late.checkBatch([check], undefined, known)).toEqual(['approved']);
  expect((await key.stored()).state).toMatchObject({ start: 30, holdUntil: 'no' });
});

test('a replica that has not heard of an approval in a key made again does not take it for lost', async () => {
  const limits = { windowMillis: 5, maxRequests: 1 };
  const late = key.replica('r1', { limits, leaseMillis: 3000 });
  await late.check(['a']);
  const [lowestTicket] = (await late.checkOrWait(['b'])) as number[];
  // As Redis does when the key has expired.
  const { state, requests, queue, waiting, replicas } = key.names;
  await redis.client.del(state, requests, queue, waiting, replicas);
  await key.setTime(10_000);
  await key.replica('r2', { limits, leaseMillis: 3000 }).check(['c']);
  await key.setTime(10_600);
  expect(await late.settle({ b: lowestTicket! })).toMatchObject({ granted: ['b'] });
  const known = { lowestTicket: lowestTicket!, requestId: 'b', millisToWindowEnd: 0 };
  await late.checkBatch([{ requestId: 'd', canWait: false }], undefined, known);
  expect((await key.stored()).state).toMatchObject({ born: 10_000, holdUntil: 'no' });
});
