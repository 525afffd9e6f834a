import { TEST_KEPT_MILLIS, useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);
// Three windows are no shorter than this lease, so nothing outlives them.
const replica = key.replica('r1', { leaseMillis: 3000 });

const LAST_MILLISECOND = 3999;
const END_OF_THIRD_IDLE_WINDOW = 4000;

test.each([
  ['release', () => replica.release('a')],
  ['settle', () => replica.settle()],
  ['withdraw', () => replica.withdraw(['a'])],
])('%s does not keep the key, and removes it, although Redis still has it', async (_name, call) => {
  await replica.check(['a']);
  for (const now of [1500, 2500, LAST_MILLISECOND]) {
    await key.setTime(now);
    await call();
  }
  expect(await key.stored()).toMatchObject({
    state: { start: 3000, approved: 0, expires: END_OF_THIRD_IDLE_WINDOW },
    expiry: { state: END_OF_THIRD_IDLE_WINDOW },
  });
  await key.setTime(END_OF_THIRD_IDLE_WINDOW);
  await call();
  expect((await key.stored()).expiry).toEqual({});
});

test('a check puts off the expiry, and at its time makes the key again', async () => {
  await replica.check(['a'], { maxRequests: 7 });
  await key.setTime(LAST_MILLISECOND);
  await replica.check(['b']);
  expect(await key.stored()).toMatchObject({
    state: { start: 3000, max: 7, approved: 1, expires: 7000 },
    expiry: { state: 7000, requests: 7000 },
  });
  await key.setTime(7500);
  await replica.check(['c']);
  expect(await key.stored()).toMatchObject({
    state: { start: 7500, max: 2, approved: 1, limitsSince: 7500, overridden: [] },
    requests: ['c'],
    expiry: { state: 11_500, requests: 11_500 },
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
    expect((await key.stored()).expiry).toMatchObject({
      state: TEST_KEPT_MILLIS,
      queue: TEST_KEPT_MILLIS,
    });
  });

  test('do not keep the key if all their replicas are dead', async () => {
    const leaseMillis = 500;
    const [brief, other] = [key.replica('r1', { leaseMillis }), key.replica('r2', { leaseMillis })];
    await brief.check(['a', 'b']);
    await brief.checkOrWait(['c']);
    await key.setTime(END_OF_THIRD_IDLE_WINDOW);
    await other.release('unknown');
    await key.setTime(8000);
    expect((await other.settle()).millisToRoom).toBeUndefined();
    expect((await key.stored()).expiry).toEqual({});
  });

  test('that were put back keep the window in which they were served', async () => {
    const changed = key.replica('r2', { limits: { windowMillis: 60_000 } });
    await replica.check(['a'], { maxRequests: 1 });
    await key.setTime(3500);
    const reply = await changed.settle({ lost: 1 });
    expect(reply).toMatchObject({ millisToRoom: 59_500, granted: ['lost'] });
    await key.setTime(END_OF_THIRD_IDLE_WINDOW);
    expect(await changed.check(['b'])).toEqual(['denied']);
  });
});

test('a key in a recovery is not idle, however short its windows', async () => {
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

describe('a replica that has not heard of an approval does not take for lost', () => {
  const limits = { windowMillis: 5, maxRequests: 1 };
  const leaseMillis = 3000;
  const [late, other] = [
    key.replica('r1', { limits, leaseMillis }),
    key.replica('r2', { limits, leaseMillis }),
  ];
  let lowestTicket: number;
  beforeEach(async () => {
    await late.check(['a']);
    [lowestTicket] = (await late.checkOrWait(['b'])) as [number];
  });

  test('an idle key that was removed', async () => {
    await key.setTime(5);
    expect(await other.settle()).toMatchObject({ granted: ['b'] });
    await key.setTime(30);
    const known = { lowestTicket, millisToWindowEnd: 0 };
    const check = { requestId: 'c', canWait: false };
    expect(await late.checkBatch([check], undefined, known)).toEqual(['approved']);
    expect((await key.stored()).state).toMatchObject({ start: 30, holdUntil: 'no' });
  });

  test('a key that was made again', async () => {
    // As Redis does when the key has expired.
    await key.lose();
    await key.setTime(10_000);
    await other.check(['c']);
    await key.setTime(10_600);
    expect(await late.settle({ b: lowestTicket })).toMatchObject({ granted: ['b'] });
    const known = { lowestTicket, requestId: 'b', millisToWindowEnd: 0 };
    await late.checkBatch([{ requestId: 'd', canWait: false }], undefined, known);
    expect((await key.stored()).state).toMatchObject({ born: 10_000, holdUntil: 'no' });
  });
});
