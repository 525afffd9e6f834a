import {
  type ReplicaOptions,
  useScriptHarness,
  type TestReplica,
} from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

const SHORT = { windowMillis: 300, maxRequests: 3 };
const LONG = { windowMillis: 1000, maxRequests: 10 };

/** A replica whose rules were loaded at this time. */
function replica(id: string, limits: ReplicaOptions['limits'], loaded: number): TestReplica {
  return key.replica(id, { limits: { ...limits, maxRequestsInQueue: 3 }, history: { loaded } });
}

async function limits(): Promise<string | undefined> {
  const state = await key.stored();
  return state.state && `${String(state.state.window)}:${String(state.state.max)}`;
}

const ids = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

function approved(verdicts: readonly unknown[]): number {
  return verdicts.filter((verdict) => verdict === 'approved').length;
}

describe('while replicas have different rules', () => {
  test.each([
    ['the shorter window', SHORT, LONG],
    ['the longer window', LONG, SHORT],
  ])(
    'each window has the length and the maximum of one replica: %s first',
    async (_, first, second) => {
      const [older, newer] = [replica('older', first, -20), replica('newer', second, -10)];
      await older.check(['a']);
      let inWindow = 0;
      let start: unknown = 0;
      for (let at = 0; at < 4000; at += 50) {
        await key.setTime(at);
        for (const [i, caller] of [older, newer].entries()) {
          const verdicts = await caller.check(ids(`${at}-${i}-`, 4));
          const { state } = await key.stored();
          if (state?.start !== start) [start, inWindow] = [state?.start, 0];
          inWindow += approved(verdicts);
          expect(inWindow).toBeLessThanOrEqual(state?.max as number);
          expect(['300:3', '1000:10']).toContain(await limits());
        }
      }
    },
  );

  test('newer rules come into force at the next boundary, as a whole', async () => {
    const [older, newer] = [replica('older', SHORT, -20), replica('newer', LONG, 100)];
    await older.check(['a']);
    await key.setTime(200);
    expect(approved(await newer.check(ids('b', 5)))).toBe(2);
    expect(await limits()).toBe('300:3');
    await key.setTime(300);
    expect(approved(await newer.check(ids('c', 12)))).toBe(10);
    expect(await limits()).toBe('1000:10');
    await key.setTime(1300);
    await older.check(['d']);
    expect(await limits()).toBe('1000:10');
  });
});

test.each([
  ['', 0],
  [' after the clock has gone back', -3_600_000],
])('limits of a replica that may be gone stay for a minute%s', async (_when, begin) => {
  const [gone, living] = [replica('gone', SHORT, 0), replica('living', LONG, -4_000_000)];
  await gone.check(['a']);
  for (let at = 0; at < 60_000; at += 900) {
    await key.setTime(begin + at);
    await living.check([`b${at}`]);
    expect(await limits()).toBe('300:3');
  }
  await key.setTime(begin + 60_000);
  await living.check(['c']);
  expect(await limits()).toBe('1000:10');
});

describe('after Redis has lost a key', () => {
  const DEFAULTS = { windowMillis: 60_000, maxRequests: 100 };

  async function waitAndLose(): Promise<TestReplica> {
    const r1 = key.replica('r1', { limits: DEFAULTS, history: { since: 0 } });
    const overrides = { maxRequests: 2, maxRequestsInQueue: 40 };
    await r1.check(ids('a', 2), overrides);
    await r1.checkOrWait(['b', 'c', 'd', 'e'], overrides);
    await key.setTime(100);
    await key.lose();
    return r1;
  }
  const KNOWN = '60000:2*:40*';
  const WAITERS = { b: 1, c: 2, d: 3, e: 4 };

  test('a settle restores the limits that were in force, not those of the rules', async () => {
    const r1 = await waitAndLose();
    expect(await r1.settle(WAITERS, 59_900, KNOWN)).toMatchObject({ limits: KNOWN, waiting: 4 });
    await key.setTime(60_000);
    expect((await r1.settle()).granted).toEqual(['b', 'c']);
  });

  test.each([
    ['since the lost window come into force with the next check', 200, '1000:50'],
    ['before the lost window do not replace its limits', 99, '1000:2'],
  ])('rules that were loaded %s', async (_what, loaded, expected) => {
    const r1 = await waitAndLose();
    await key.setTime(2000);
    // The window of 1 s, which the replica knew last, ended 900 ms ago.
    await r1.settle(WAITERS, -900, '1000:2:40');
    expect(await limits()).toBe('1000:2');
    const newer = { ...DEFAULTS, windowMillis: 1000, maxRequests: 50 };
    await key.replica('r2', { limits: newer, history: { loaded } }).check(['x']);
    expect(await limits()).toBe(expected);
  });

  test('a check also restores the limits that were in force', async () => {
    const r1 = await waitAndLose();
    const known = { lowestTicket: 1, millisToWindowEnd: 59_900, limits: KNOWN };
    expect(await r1.checkBatch([{ requestId: 'x', canWait: false }], {}, known)).toEqual([
      'denied',
    ]);
    expect((await key.stored()).state).toMatchObject({ max: 2, queueMax: 40 });
  });

  test('a key that a newcomer has made again gets back the limits that requests set', async () => {
    const r1 = await waitAndLose();
    expect(await key.replica('r2', { limits: DEFAULTS }).check(['x'])).toEqual(['approved']);
    await r1.settle(WAITERS, 59_900, KNOWN);
    await key.setTime(600);
    expect((await r1.settle()).granted).toEqual(['b']);
    expect((await key.stored()).state).toMatchObject({ approved: 2, max: 2, queueMax: 40 });
  });

  test('a check of one that waits gives such a key back the limits that requests set', async () => {
    const r1 = await waitAndLose();
    await key.replica('r2', { limits: DEFAULTS }).check(['x']);
    const known = { lowestTicket: 1, millisToWindowEnd: 59_900, limits: KNOWN };
    await r1.checkBatch([{ requestId: 'y', canWait: false }], {}, known);
    expect((await key.stored()).state).toMatchObject({ max: 2, queueMax: 40 });
  });

  test('a check with a limited wait estimates its turn by the newer rules', async () => {
    const r1 = await waitAndLose();
    const newer = key.replica('r1', { limits: { ...DEFAULTS, windowMillis: 30_000 } });
    const known = { lowestTicket: 1, millisToWindowEnd: 59_900, limits: KNOWN };
    const check = { requestId: 'x', canWait: true, maxWaitMillis: 1000 };
    expect(await newer.checkBatch([check], {}, known)).toEqual(['turn in 59900 ms']);
    expect(await r1.settle(WAITERS, 59_900, KNOWN)).toMatchObject({ waiting: 4 });
  });

  test('a newer override of a request stays', async () => {
    const r1 = await waitAndLose();
    await key.replica('r2', { limits: DEFAULTS }).check(['x'], { maxRequests: 3 });
    await r1.settle(WAITERS, 59_900, KNOWN);
    expect((await key.stored()).state).toMatchObject({ max: 3, queueMax: 40 });
  });

  test('the reply to a check that waits has the limits in force', async () => {
    const r1 = key.replica('r1', { limits: DEFAULTS });
    const checks = ['a', 'b'].map((requestId) => ({ requestId, canWait: true }));
    const reply = await r1.checkReply(checks, { maxRequests: 1 });
    expect(reply).toMatchObject({
      quota: { limits: [{ maximum: 1 }] },
      queueNews: { limits: '60000:1*:3' },
    });
  });
});
