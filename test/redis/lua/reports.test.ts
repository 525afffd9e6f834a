import { TEST_LEASE_MILLIS, useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { type WakeRecorder, useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();

const MINUTE = 60_000;

describe('a report of what remains', () => {
  const key = useScriptHarness(redis);
  const TOKENS = {
    name: 'tokens',
    windowMillis: 5000,
    maximum: 100,
    counts: 'hits',
    keepsReleased: false,
  } as const;
  const replica = key.replica('r1', { limits: { maxRequests: 10 }, leaseMillis: 3000 });
  const withTokens = key.replica('r2', {
    limits: { maxRequests: 10, further: [TOKENS] },
    leaseMillis: 3000,
  });

  test('keeps the key and its approvals for three windows after it resets', async () => {
    await replica.check(['a']);
    await key.setTime(300);
    await replica.report({ remaining: 2, resetMillis: MINUTE });
    const expiry = { state: 300 + MINUTE + 3000, requests: 300 + MINUTE + 3000 };
    expect((await key.stored()).expiry).toEqual(expiry);
  });

  test('lets as many waiters go when it resets as it has kept, and the others when the window ends', async () => {
    const some = key.replica('r3', { limits: { maxRequests: 3 } });
    await some.check(['a']);
    await some.report({ remaining: 0, resetMillis: 300 });
    await some.checkOrWait(['b']);
    expect(await some.peek({})).toBe('turn in 300 ms');
    await some.checkOrWait(['c']);
    expect(await some.peek({})).toBe('turn in 1000 ms');
  });

  test('keeps the approvals of a further limit for as long', async () => {
    await withTokens.check(['a']);
    await withTokens.report({ limit: 'tokens', remaining: 2, resetMillis: MINUTE });
    expect((await key.stored()).expiry).toMatchObject({
      state: MINUTE,
      'took:tokens': MINUTE + 3 * 5000,
    });
  });

  test('leaves nothing in the state after its time', async () => {
    await replica.check(['a']);
    await replica.report({ remaining: 2, resetMillis: 400 });
    const reported_until = key.startMillis + 400;
    expect(await key.optionalFields()).toMatchObject({
      own: { surplus: 7, floor: 8, reported_until },
    });
    await key.setTime(400);
    await replica.check(['b']);
    expect(await key.optionalFields()).toEqual({});
    expect((await key.stored()).state).toMatchObject({ start: 0, approved: 2 });
  });

  test('leaves nothing in the state after the window that it has made longer', async () => {
    await replica.check(['a']);
    await replica.report({ remaining: 2, resetMillis: 2500 });
    await key.setTime(2500);
    await replica.check(['b']);
    expect(await key.optionalFields()).toEqual({});
    expect((await key.stored()).state).toMatchObject({ start: 2500, approved: 1 });
  });

  test('that is sent again changes nothing', async () => {
    await replica.report({ remaining: 2, resetMillis: MINUTE });
    await replica.check(['a']);
    const before = await key.stored();
    expect(await replica.report({ remaining: 2, resetMillis: MINUTE })).toEqual({ remaining: 1 });
    expect(await key.stored()).toEqual(before);
  });

  test('lets a call about an approval of the longer window find it', async () => {
    const settling = key.replica('r1', { limits: { maxRequests: 10 } });
    await settling.check(['a']);
    await settling.report({ remaining: 2, resetMillis: MINUTE });
    await key.setTime(MINUTE + 2 * TEST_LEASE_MILLIS - 1);
    expect((await settling.settle({ a: 0 })).granted).toEqual(['a']);
  });

  test('lets calls find an approval of the longer window for two leases, also if windows are short', async () => {
    const short = key.replica('short', { limits: { windowMillis: 100, maxRequests: 2 } });
    await short.check(['a']);
    // Ids of short windows are kept in sets that each last for a lease, from a multiple of it on.
    const end = 4 * TEST_LEASE_MILLIS - (key.startMillis % TEST_LEASE_MILLIS) - 1;
    await short.report({ remaining: 0, resetMillis: end });
    for (const passed of [0, 200, TEST_LEASE_MILLIS + 200, 2 * TEST_LEASE_MILLIS - 1]) {
      await key.setTime(end + passed);
      await short.check([`b${passed}`, `c${passed}`]);
    }
    expect((await short.settle({ a: 0 })).granted).toEqual(['a']);
  });
});

describe('a report while requests wait', () => {
  const key = useScriptHarness(redis);
  const recordWakes = useWakeRecorder(redis);
  const r1 = key.replica('r1');
  const roomsTold = async (wakes: WakeRecorder): Promise<unknown[]> =>
    (await wakes.read()).map(({ millisToRoom }) => millisToRoom);

  test('that resets sooner than the one before tells all replicas when there is room', async () => {
    await r1.report({ remaining: 0, resetMillis: MINUTE });
    await r1.checkOrWait(['a']);
    const wakes = await recordWakes(key.names.wakeChannel);
    await key.setTime(100);
    await r1.report({ remaining: 0, resetMillis: 2000 });
    expect(await roomsTold(wakes)).toEqual([2000]);
    await key.setTime(2100);
    expect((await r1.settle()).granted).toEqual(['a']);
  });

  test('that makes the window longer tells the next settle, and publishes nothing', async () => {
    await r1.check(['a']);
    await r1.checkHits('b', 2, { canWait: true });
    const wakes = await recordWakes(key.names.wakeChannel);
    await r1.report({ remaining: 0, resetMillis: 3000 });
    expect(await roomsTold(wakes)).toEqual([]);
    await key.setTime(1000);
    expect(await r1.settle()).toMatchObject({ granted: [], millisToRoom: 2000 });
    await key.setTime(3000);
    expect((await r1.settle()).granted).toEqual(['b']);
  });
});
