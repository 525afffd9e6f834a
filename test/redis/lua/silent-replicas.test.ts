import {
  ScriptHarness,
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

let key: ScriptHarness;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
});

/** A replica with the only waiters of the key, b and c. */
async function waitAt0(): Promise<TestReplica> {
  const silent = key.replica('silent', { limits: LIMITS });
  await silent.check(['a']);
  await silent.checkOrWait(['b', 'c']);
  return silent;
}

const other = (history: { since?: number; until?: number }): TestReplica =>
  key.replica('other', { limits: LIMITS, history });

describe('a replica whose lease ran out is dead, and the key is not held, if the caller knows', () => {
  test.each([
    ['that Redis was up all the time', { since: -10 }],
    ['that Redis was up for a whole lease', { since: 1000 }],
  ])('%s', async (_what, history) => {
    await waitAt0();
    await key.setTime(6000);
    expect(await other(history).check(['x'])).toEqual(['approved']);
    expect((await key.stored()).state).toMatchObject({ holdUntil: 'no' });
  });
});

describe('the key is held for replicas that may come back if', () => {
  test.each([
    ['the caller knows nothing', {}],
    ['Redis has just come back to the caller', { since: 5990 }],
    ['Redis last answered the caller before the others fell silent', { since: -10, until: 3000 }],
  ])('%s', async (_what, history) => {
    const silent = await waitAt0();
    await key.setTime(6000);
    expect(await other(history).check(['x'])).toEqual(['denied']);
    expect((await silent.settle()).granted).toEqual([]);
    await key.setTime(6500);
    expect((await silent.settle()).granted).toEqual(['b']);
  });
});

describe('a key that has idled out is not held when it is made again', () => {
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
  const [wake] = await wakes.take();
  expect(JSON.parse(wake!)).toMatchObject({ millisToRoom: 400, waiting: 2, granted: [] });
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
