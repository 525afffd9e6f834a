import {
  useScriptHarness,
  TEST_LEASE_MILLIS,
  type TestReplica,
} from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const LIMITS = { windowMillis: 6000, maxRequests: 1 };
/** A replica is silent after more than three fifths of its lease. */
const SILENT = TEST_LEASE_MILLIS * 0.6 + 1;

const key = useScriptHarness(redis);

/** A replica with the only waiters of the key, b and c. */
async function waitAt0(): Promise<TestReplica> {
  const silent = key.replica('silent', { limits: LIMITS });
  await silent.check(['a']);
  await silent.checkOrWait(['b', 'c']);
  return silent;
}

const other = (history: { since?: number; until?: number }): TestReplica =>
  key.replica('other', { limits: LIMITS, history });

test.each([
  ['that Redis was up all the time', { since: -10 }],
  ['that Redis was up for a whole lease', { since: 1000 }],
])(
  'a replica whose lease ran out is dead, and the key is not held, if the caller knows %s',
  async (_what, history) => {
    await waitAt0();
    await key.setTime(6000);
    expect(await other(history).check(['x'])).toEqual(['approved']);
    expect((await key.stored()).state).toMatchObject({ holdUntil: 'no' });
  },
);

test.each([
  ['the caller knows nothing', {}],
  ['Redis has just come back to the caller', { since: 5990 }],
  ['Redis last answered the caller before the others fell silent', { since: -10, until: 3000 }],
])('the key is held for replicas that may come back if %s', async (_what, history) => {
  const silent = await waitAt0();
  await key.setTime(6000);
  expect(await other(history).check(['x'])).toEqual(['denied']);
  expect((await silent.settle()).granted).toEqual([]);
  await key.setTime(6500);
  expect((await silent.settle()).granted).toEqual(['b']);
});

describe('a key that has idled out does not recover when it is made again', () => {
  const limits = { windowMillis: 60, maxRequests: 1 };
  const leaseMillis = 600;

  /** A replica with a waiter, whose history does not show that Redis was up. */
  async function waitUntilIdle(): Promise<{ late: TestReplica; ticket: number }> {
    const late = key.replica('late', { limits, leaseMillis, history: { since: 100 } });
    await late.check(['a']);
    const [ticket] = (await late.checkOrWait(['b'])) as number[];
    // The lease has ended, but Redis first answered the caller less than a whole lease ago.
    await key.setTime(667);
    return { late, ticket: ticket! };
  }

  test('by a replica that puts its waiter back', async () => {
    const { late, ticket } = await waitUntilIdle();
    expect((await late.settle({ b: ticket })).granted).toEqual(['b']);
    expect((await key.stored()).state).toMatchObject({ start: 667, holdUntil: 'no' });
  });

  test('by another replica, before a waiter is put back', async () => {
    const { late, ticket } = await waitUntilIdle();
    const punctual = key.replica('punctual', { limits, leaseMillis, history: { since: -10 } });
    expect(await punctual.check(['x'])).toEqual(['approved']);
    expect((await late.settle({ b: ticket })).granted).toEqual([]);
    expect((await key.stored()).state).toMatchObject({ start: 667, holdUntil: 'no' });
    await key.setTime(727);
    expect((await late.settle()).granted).toEqual(['b']);
  });
});

test('a key that is removed after a recovery does not recover again for a caller that knows less of Redis', async () => {
  const limits = { windowMillis: 60, maxRequests: 1 };
  const leaseMillis = 600;
  const silent = key.replica('silent', { limits, leaseMillis, history: { since: -10 } });
  await silent.check(['a']);
  await silent.checkOrWait(['b']);
  const unknowing = key.replica('unknowing', { limits, leaseMillis });
  await key.setTime(450);
  expect(await unknowing.check(['x'])).toEqual(['denied']);
  expect((await key.stored()).state).toMatchObject({ holdUntil: 950 });

  await key.setTime(1600);
  const knowing = key.replica('knowing', { limits, leaseMillis, history: { since: -10 } });
  expect(await knowing.release('a')).toBe(false);
  expect(await unknowing.release('a')).toBe(false);
  expect((await key.stored()).state).toMatchObject({ start: 420, holdUntil: 'no' });
  expect(await unknowing.check(['y'])).toEqual(['approved']);
  expect((await key.stored()).state).toMatchObject({ start: 1600, approved: 1, holdUntil: 'no' });
});

describe('joining the queue', () => {
  test('does not hide, by renewing the lease of the caller, that Redis was down', async () => {
    const silent = await waitAt0();
    await key.setTime(SILENT);
    const [ticket] = await other({ since: SILENT }).checkOrWait(['d']);
    expect(ticket).toBe(SILENT * 1000);
    expect((await key.stored()).state).toMatchObject({ holdUntil: SILENT + 500 });
    await key.setTime(SILENT + 400);
    await silent.settle();
    await key.setTime(6000);
    expect((await other({ since: 0 }).settle()).granted).toEqual(['b']);
  });

  test('begins no hold if the other replicas are just silent', async () => {
    await waitAt0();
    await key.setTime(TEST_LEASE_MILLIS);
    await other({ since: -10 }).checkOrWait(['d']);
    expect((await key.stored()).state).toMatchObject({ holdUntil: 'no' });
    await key.setTime(6000);
    expect((await other({ since: -10 }).settle()).granted).toEqual(['d']);
  });
});

test('a release in a hold wakes replicas that asked before the hold with the time of room', async () => {
  const silent = await waitAt0();
  await key.setTime(SILENT);
  expect(await silent.settle()).toMatchObject({ millisToRoom: 6000 - SILENT });
  expect((await key.stored()).state).toMatchObject({ holdUntil: SILENT + 500 });
  await key.setTime(SILENT + 100);
  const wakes = await recordWakes(key.names.wakeChannel);
  expect(await other({ since: SILENT }).release('a')).toBe(true);
  expect(await wakes.read()).toMatchObject([{ millisToRoom: 400, waiting: 2, granted: [] }]);
  await key.setTime(SILENT + 500);
  expect((await silent.settle()).granted).toEqual(['b']);
});

test('a hold takes no longer if the clock goes back', async () => {
  const silent = await waitAt0();
  await key.setTime(6000);
  expect((await silent.settle()).granted).toEqual([]);
  await key.setTime(2000);
  expect((await silent.settle()).granted).toEqual([]);
  await key.setTime(2500);
  await silent.settle();
  expect((await key.stored()).state).toMatchObject({ holdUntil: 'no' });
});

describe('a hold in which no call came begins again, since Redis may have been down', () => {
  const BEGUN = 6000;
  const holdUntil = async (): Promise<unknown> => (await key.stored()).state!.holdUntil;

  /** Leases of two replicas with waiters ran out while Redis was down. One of them is back. */
  async function comeBack(): Promise<{ silent: TestReplica; back: TestReplica }> {
    const silent = await waitAt0();
    await other({ since: 0 }).checkOrWait(['d']);
    await key.setTime(BEGUN);
    const back = other({ since: BEGUN });
    expect(await back.settle()).toMatchObject({ granted: [], millisToRoom: 500 });
    return { silent, back };
  }

  test.each([
    ['last answered the caller when it began', { since: BEGUN, until: BEGUN + 3 }],
    ['answers the caller again', { since: BEGUN }],
    ['has answered the caller for less than a lease', { since: BEGUN - TEST_LEASE_MILLIS + 1 }],
    ['may never have answered the caller', {}],
  ])('if Redis %s', async (_what, history) => {
    const { silent, back } = await comeBack();
    await key.setTimeInSilence(BEGUN + 984);
    expect(await other(history).settle()).toMatchObject({ granted: [], millisToRoom: 500 });
    await key.setTimeInSilence(BEGUN + 1000);
    await silent.settle();
    await key.setTimeInSilence(BEGUN + 1284);
    await back.settle();
    await key.setTimeInSilence(BEGUN + 1484);
    expect((await back.settle()).granted).toEqual(['b']);
  });

  test('before its time is over as well', async () => {
    const { back } = await comeBack();
    await key.setTimeInSilence(BEGUN + 401);
    expect(await back.settle()).toMatchObject({ millisToRoom: 500 });
  });

  test('whoever calls', async () => {
    const { back } = await comeBack();
    await key.setTimeInSilence(BEGUN + 984);
    expect(await key.replica('third', { limits: LIMITS }).check(['x'])).toEqual(['denied']);
    expect(await holdUntil()).toBe(BEGUN + 1484);
    expect(await back.settle()).toMatchObject({ granted: [], millisToRoom: 500 });
  });

  test('after a loss of memory', async () => {
    const { back } = await comeBack();
    await key.lose();
    await back.settle({ d: 3 });
    await key.setTimeInSilence(BEGUN + 984);
    await back.settle();
    expect(await holdUntil()).toBe(BEGUN + 1484);
  });

  test.each([
    ['calls of others show that Redis is up', [200, 600]],
    ['its replicas call before its end', [300, 600]],
    ['its replicas call as late as they may', [400, 800]],
  ])('but not if %s', async (_what, [first, second]) => {
    const { back } = await comeBack();
    await key.setTimeInSilence(BEGUN + first!);
    await key.replica('third', { limits: LIMITS }).withdraw(['nobody']);
    expect(await holdUntil()).toBe(BEGUN + 500);
    await key.setTimeInSilence(BEGUN + second!);
    expect((await back.settle()).granted).toEqual(['d']);
  });

  test('but not for a caller that knows that Redis was up for a lease in it', async () => {
    await comeBack();
    const later = BEGUN + TEST_LEASE_MILLIS;
    await key.setTimeInSilence(later);
    expect(await other({ since: BEGUN + 10 }).check(['x'])).toEqual(['denied']);
    expect(await holdUntil()).toBe(later + 500);
    await key.setTimeInSilence(later + TEST_LEASE_MILLIS);
    expect(await other({ since: BEGUN + 10 }).check(['y'])).toEqual(['approved']);
  });

  test('three times at most, so that rare callers who know nothing are not denied for ever', async () => {
    await comeBack();
    const rare = key.replica('rare', { limits: LIMITS });
    const verdicts: unknown[] = [];
    for (let call = 1; call <= 5; call += 1) {
      await key.setTimeInSilence(BEGUN + call * 10_000);
      verdicts.push(...(await rare.check([`x${call}`])));
    }
    expect(verdicts).toEqual(['denied', 'denied', 'denied', 'approved', 'approved']);
  });

  test('three times at most in each hold', async () => {
    const { back } = await comeBack();
    for (let call = 1; call <= 4; call += 1) {
      await key.setTimeInSilence(BEGUN + call * 1000);
      await back.settle();
    }
    expect(await holdUntil()).toBe('no');
  });
});

describe('a settle in a hold says when the next is due', () => {
  test('in the middle of the hold, and then when there may be room', async () => {
    const silent = await waitAt0();
    await key.setTime(6000);
    expect(await silent.settle()).toMatchObject({ millisToRoom: 500, millisToLook: 300 });
    await key.setTime(6250);
    expect(await silent.settle()).toMatchObject({ millisToRoom: 250, millisToLook: 50 });
    await key.setTime(6300);
    expect(await silent.settle()).toMatchObject({ millisToRoom: 200, millisToLook: undefined });
  });

  test('at its end as well, if there is no room yet', async () => {
    const silent = await waitAt0();
    await key.setTime(SILENT);
    expect(await silent.settle()).toMatchObject({ millisToRoom: 6000 - SILENT, millisToLook: 300 });
    await key.setTimeInSilence(SILENT + 300);
    expect(await silent.settle()).toMatchObject({ millisToRoom: 5700 - SILENT, millisToLook: 200 });
    await key.setTimeInSilence(SILENT + 500);
    expect(await silent.settle()).toMatchObject({ millisToLook: undefined });
    expect((await key.stored()).state).toMatchObject({ holdUntil: 'no' });
    await key.setTimeInSilence(6000);
    expect((await silent.settle()).granted).toEqual(['b']);
  });

  test('but not without a hold', async () => {
    const silent = await waitAt0();
    expect(await silent.settle()).toMatchObject({ millisToRoom: 6000, millisToLook: undefined });
  });
});
