import { randomUUID } from 'node:crypto';

import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { LimitState } from '../../../src/limiter/limits.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import type { WatchedCheck } from '../watched-check.js';
import { type KeyUnderTest, useKey } from './use-key.js';

const WINDOW = 1000;
/** An approval of the step that begins at 0 counts until 1100. */
const SLIDING: Algorithm = { name: 'sliding_window', steps: 10 };

function bucket(burst: number): Algorithm {
  return { name: 'token_bucket', burst };
}

function limitsOf(algorithm: Algorithm, maxRequests: number): DeclaredLimits {
  return { windowMillis: WINDOW, maxRequests, maxRequestsInQueue: 20, algorithm };
}

/** A key under test, with times after the start of each test. */
interface TimedKey extends KeyUnderTest {
  /** Sets the limits before the first check. */
  readonly use: (algorithm: Algorithm, maxRequests: number) => void;
  /** Sets other rules, of which the limiter learns. */
  readonly change: (limits: DeclaredLimits) => Promise<void>;
  /** Moves the clock to this time. */
  readonly at: (millis: number) => Promise<void>;
  /** The key's own limit. */
  readonly own: () => Promise<LimitState | undefined>;
  readonly used: () => Promise<number | undefined>;
  readonly amend: (requestId: string, hits: number) => Promise<unknown>;
  /** Asserts that one check is denied right before this time, and approved at it. */
  readonly expectRoomAt: (millis: number) => Promise<void>;
}

function useTimedKey(createHarness: HarnessFactory): TimedKey {
  let limits: DeclaredLimits;
  let now: number;
  beforeEach(() => {
    now = 0;
  });
  const key = useKey(createHarness, () => limits);
  const { harness, inspect, outcome } = key;
  const own = async (): Promise<LimitState | undefined> => (await inspect())?.limits[0];
  const at = async (millis: number): Promise<void> => {
    await harness.advance(millis - now);
    now = millis;
  };
  return {
    ...key,
    use: (algorithm, maxRequests) => {
      limits = limitsOf(algorithm, maxRequests);
    },
    change: async (changed) => {
      limits = changed;
      harness.limiter.limitsChanged();
      await harness.quiet();
    },
    at,
    own,
    used: async () => (await own())?.used,
    amend: (requestId, hits) => harness.limiter.ask('amend', { key: key.key, requestId, hits }),
    expectRoomAt: async (millis) => {
      await at(millis - 1);
      expect(await outcome()).toBe('denied');
      await at(millis);
      expect(await outcome()).toBe('approved');
    },
  };
}

/** Which of these have been approved. */
function approvedOf(waiters: readonly WatchedCheck[]): boolean[] {
  return waiters.map(({ settled }) => settled?.outcome === 'approved');
}

/** The behaviour of every limiter for limits that are no fixed windows. */
export function describeAlgorithms(name: string, createHarness: HarnessFactory): void {
  describe(`sliding windows: ${name}`, () => {
    const key = useTimedKey(createHarness);
    const { check, approve, wait, release, amend, at, used, expectRoomAt } = key;

    test('have room again when a step ends to count, and never earlier', async () => {
      key.use(SLIDING, 2);
      expect(await check()).toMatchObject({
        outcome: 'approved',
        quota: { limits: [{ algorithm: SLIDING, remaining: 1, resetMillis: 1100 }] },
      });
      await at(150);
      expect(await check()).toMatchObject({
        quota: { limits: [{ remaining: 0, resetMillis: 950 }] },
      });
      await expectRoomAt(1100);
      await expectRoomAt(1200);
      await expectRoomAt(2200);
      expect(await used()).toBe(2);
    });

    test('that have more than the maximum after a correction say in all answers when they have room', async () => {
      key.use(SLIDING, 2);
      await approve();
      await at(150);
      await amend(await approve(), 3);
      const quota = { limits: [{ resetMillis: 1050 }] };
      expect(await check()).toMatchObject({ outcome: 'denied', quota });
      const peek = await key.harness.limiter.ask('peek', { key: key.key });
      expect(peek).toMatchObject({ turnMillis: 1050, quota });
      await expectRoomAt(1200);
    });

    test('give back what is released to the step in which it was approved', async () => {
      key.use(SLIDING, 3);
      await approve({ hits: 2 });
      await at(150);
      const released = await approve();
      expect(await release(released)).toBe(true);
      expect(await release(released)).toBe(false);
      expect(await used()).toBe(2);
      await approve();
      await at(1100);
      expect(await used()).toBe(1);
      await at(1200);
      expect(await used()).toBe(0);
    });

    test('count the hits of an approval, and corrections of them, in its step', async () => {
      key.use(SLIDING, 5);
      const id = await approve({ hits: 3 });
      await at(150);
      expect(await amend(id, 1)).toEqual({});
      expect(await used()).toBe(1);
      await approve({ hits: 2 });
      expect(await amend(id, 6)).toEqual({});
      expect(await used()).toBe(8);
      expect(await check({ hits: 6 })).toMatchObject({ reason: 'too_many_hits' });
      await at(1100);
      expect(await used()).toBe(2);
    });

    test('count held approvals while they are held', async () => {
      key.use(SLIDING, 1);
      const held = await approve({ holdMillis: 5000 });
      await at(3000);
      expect(await used()).toBe(1);
      expect(await release(held)).toBe(true);
      const next = await approve({ holdMillis: 2000 });
      await expectRoomAt(5000);
      expect(await release(next)).toBe(false);
    });

    test('serve waiters in their order when steps end', async () => {
      key.use(SLIDING, 2);
      await approve();
      await at(150);
      await approve();
      const waiters = [await wait(), await wait({ hits: 2 }), await wait()];
      await at(1099);
      expect(approvedOf(waiters)).toEqual([false, false, false]);
      await at(1100);
      expect(approvedOf(waiters)).toEqual([true, false, false]);
      await at(2199);
      expect(approvedOf(waiters)).toEqual([true, false, false]);
      await at(2200);
      expect(approvedOf(waiters)).toEqual([true, true, false]);
      await at(3300);
      expect(approvedOf(waiters)).toEqual([true, true, true]);
    });

    test('serve a waiter of several hits when the step of a claimed approval ends, not when that would have lapsed', async () => {
      key.use(SLIDING, 3);
      await approve({ holdMillis: 90_000 });
      await approve({ hits: 2 });
      const kept = await wait({ requestId: randomUUID(), keepMillis: 60_000 });
      const waiters = [kept, await wait({ hits: 2 })];
      await at(1100);
      expect(approvedOf(waiters)).toEqual([true, false]);
      await at(2200);
      expect(approvedOf(waiters)).toEqual([true, true]);
    });

    test('deny a wait at once exactly if its turn comes later, after waiters and rounds', async () => {
      key.use(SLIDING, 2);
      await approve();
      await at(150);
      await approve();
      const waiters: WatchedCheck[] = [];
      for (const turnAt of [1100, 1200, 2200, 2300, 3300]) {
        const millis = turnAt - 150;
        expect(await check({ canWait: true, maxWaitMillis: millis - 1 })).toMatchObject({
          reason: 'turn_too_late',
          turnMillis: millis,
        });
        waiters.push(await wait({ maxWaitMillis: millis }));
      }
      await at(2299);
      expect(approvedOf(waiters)).toEqual([true, true, true, false, false]);
      await at(3300);
      expect(approvedOf(waiters)).toEqual([true, true, true, true, true]);
    });
  });

  describe(`token buckets: ${name}`, () => {
    const key = useTimedKey(createHarness);
    const { check, outcome, approve, wait, release, amend, at, used, expectRoomAt } = key;

    test('give nothing back twice, also if the pace becomes slower in between', async () => {
      key.use(bucket(2), 4);
      const held = await approve({ holdMillis: 3000 });
      await at(501);
      expect(await release(held)).toBe(true);
      await check({ maxRequests: 3 });
      expect(await release(held)).toBe(false);
    });

    test('give nothing back that was taken in windows of another length', async () => {
      key.use(bucket(2), 4);
      const id = await approve({ hits: 2 });
      await at(100);
      await key.change({ ...limitsOf(bucket(2), 4), windowMillis: 4000 });
      expect(await outcome()).toBe('denied');
      await release(id);
      expect(await used()).toBe(2);
    });

    test('approve at an even pace', async () => {
      key.use(bucket(1), 10);
      expect(await check()).toMatchObject({
        outcome: 'approved',
        quota: { limits: [{ algorithm: bucket(1), remaining: 0, resetMillis: 100 }] },
      });
      await expectRoomAt(100);
      await expectRoomAt(200);
      // Time in which nothing is approved is lost.
      await at(950);
      expect(await outcome()).toBe('approved');
      await expectRoomAt(1050);
    });

    test('approve up to their burst at once', async () => {
      key.use(bucket(5), 10);
      expect(await check({ hits: 6 })).toMatchObject({ reason: 'too_many_hits' });
      await approve({ hits: 4 });
      expect(await check()).toMatchObject({
        outcome: 'approved',
        quota: { limits: [{ remaining: 0, resetMillis: 100 }] },
      });
      await expectRoomAt(100);
      await at(350);
      expect(await check({ hits: 3 })).toMatchObject({
        outcome: 'denied',
        quota: { limits: [{ remaining: 2, resetMillis: 50 }] },
      });
      await at(400);
      expect(await outcome({ hits: 3 })).toBe('approved');
      expect(await used()).toBe(5);
      await at(100_000);
      expect(await outcome({ hits: 5 })).toBe('approved');
      expect(await outcome()).toBe('denied');
    });

    test('serve the queue at the pace, each waiter at its exact time', async () => {
      key.use(bucket(5), 10);
      await approve({ hits: 5 });
      const waiters = [await wait(), await wait({ hits: 3 }), await wait()];
      for (const [i, time] of [100, 400, 500].entries()) {
        await at(time - 1);
        expect(approvedOf(waiters)).toEqual(waiters.map((_, of) => of < i));
        await at(time);
        expect(approvedOf(waiters)).toEqual(waiters.map((_, of) => of <= i));
      }
    });

    test('deny a wait at once exactly if its turn comes later', async () => {
      key.use(bucket(1), 10);
      await approve();
      const waiters: WatchedCheck[] = [];
      for (const millis of [100, 200, 300]) {
        expect(await check({ canWait: true, maxWaitMillis: millis - 1 })).toMatchObject({
          reason: 'turn_too_late',
          turnMillis: millis,
        });
        waiters.push(await wait({ maxWaitMillis: millis }));
      }
      await at(300);
      expect(approvedOf(waiters)).toEqual([true, true, true]);
    });

    test('give back what has not drained of an approval that is released', async () => {
      key.use(bucket(2), 10);
      const id = await approve();
      await approve();
      await at(50);
      expect(await release(id)).toBe(true);
      expect(await release(id)).toBe(false);
      await approve();
      await expectRoomAt(150);
    });

    test('count corrections of hits: less by what has not drained, more from now on', async () => {
      key.use(bucket(5), 10);
      const id = await approve({ hits: 5 });
      await at(100);
      expect(await amend(id, 3)).toEqual({});
      expect(await used()).toBe(3);
      expect(await amend(id, 8)).toEqual({});
      expect(await used()).toBe(8);
      await expectRoomAt(500);
    });

    test('take what a hold needs once', async () => {
      key.use(bucket(1), 10);
      const held = await approve({ holdMillis: 10_000 });
      await expectRoomAt(100);
      await at(250);
      expect(await release(held)).toBe(true);
      await approve();
      expect(await outcome()).toBe('denied');
    });

    test('drain at the old pace until another maximum is set', async () => {
      key.use(bucket(5), 10);
      await approve({ hits: 5 });
      await at(200);
      expect(await outcome({ hits: 2, maxRequests: 5 })).toBe('approved');
      await expectRoomAt(400);
      expect(await key.own()).toMatchObject({ maximum: 5, used: 5 });
    });

    test.each<[maxima: string, low: number]>([
      ['10 and 1', 1],
      ['10 and 0', 0],
    ])('give requests with the maxima %s what the higher one allows', async (_maxima, low) => {
      key.use(bucket(5), 10);
      let approved = 0;
      const approvedBy = async (millis: number): Promise<number> => {
        await at(millis);
        while ((await outcome({ maxRequests: 10 })) === 'approved') approved += 1;
        expect(await outcome({ maxRequests: low })).toBe('denied');
        return approved;
      };
      for (let turn = 0; turn < 5; turn += 1) expect(await approvedBy(0)).toBe(5);
      for (let millis = 50; millis < 2000; millis += 50) {
        // Nothing drains with a maximum of 0.
        expect(await approvedBy(millis)).toBe(low === 0 ? 5 : 5 + Math.floor(millis / 100));
      }
    });

    test('add what lower maxima have cut off their level again, as the maximum rises', async () => {
      key.use(bucket(10), 10);
      await approve({ hits: 10 });
      for (const [maxRequests, count] of [
        [4, 8],
        [1, 2],
        [0, 10],
        [1, 2],
        [4, 8],
        [10, 10],
      ] as const) {
        expect(await outcome({ maxRequests })).toBe('denied');
        expect(await used()).toBe(count);
      }
    });

    test('count releases and corrections at a lower maximum at the higher one as well', async () => {
      key.use(bucket(10), 10);
      expect(await amend(await approve({ hits: 10 }), 20)).toEqual({});
      expect(await outcome({ maxRequests: 2 })).toBe('denied');
      expect(await used()).toBe(4);
      await at(1500);
      const released = await approve();
      expect(await used()).toBe(2);
      expect(await release(released)).toBe(true);
      expect(await used()).toBe(1);
      const corrected = await approve();
      // The level of 2 rises to 4, and 1 is cut off.
      expect(await amend(corrected, 4)).toEqual({});
      expect(await used()).toBe(4);
      expect(await amend(corrected, 2)).toEqual({});
      expect(await used()).toBe(3);
      // Of the first 20, 5 have not drained.
      expect(await outcome({ maxRequests: 10, hits: 10 })).toBe('denied');
      expect(await used()).toBe(8);
    });

    test('count corrections at a lower maximum as far as the higher one would have', async () => {
      key.use(bucket(10), 10);
      const ids = [await approve({ hits: 5 }), await approve({ hits: 5 })];
      expect(await outcome({ maxRequests: 2 })).toBe('denied');
      for (const id of ids) expect(await amend(id, 20)).toEqual({});
      await at(1000);
      // Of 20 at most, 10 have drained.
      expect(await outcome({ maxRequests: 10 })).toBe('denied');
      expect(await used()).toBe(10);
    });

    test('keep what counts while rules lower the maximum and raise it again', async () => {
      key.use(bucket(50), 100);
      await approve({ hits: 50 });
      await key.change(limitsOf(bucket(1), 10));
      expect(await outcome()).toBe('denied');
      expect(await used()).toBe(11);
      await key.change(limitsOf(bucket(50), 100));
      expect(await outcome()).toBe('denied');
      expect(await used()).toBe(50);
    });

    test('let waiters have 30 ms more at once after a pause, and no more than that', async () => {
      key.use(bucket(1), 100);
      await approve();
      await key.harness.limiter.ask('pause', { key: key.key, millis: 500 });
      const waiters: WatchedCheck[] = [];
      for (let i = 0; i < 9; i += 1) waiters.push(await wait());
      const served = (): number => approvedOf(waiters).filter(Boolean).length;
      const servedAt: [millis: number, count: number][] = [];
      for (const millis of [499, 500, 519, 520, 539, 540, 559, 560]) {
        await at(millis);
        servedAt.push([millis, served()]);
      }
      expect(servedAt).toEqual([
        [499, 0],
        [500, 4],
        [519, 4],
        [520, 6],
        [539, 6],
        [540, 8],
        [559, 8],
        [560, 9],
      ]);
      await approve();
      await expectRoomAt(570);
      // Nobody waits, so time in which nothing is approved is lost.
      await at(2000);
      await approve();
      expect(await outcome()).toBe('denied');
    });
  });

  describe(`a change of the algorithm by rules: ${name}`, () => {
    const key = useTimedKey(createHarness);
    const { approve, release, outcome, at } = key;

    // What counts after one more check, whether the id from before is found, and when there is room for four hits.
    test.each<[from: Algorithm, to: Algorithm, used: number, isFound: boolean, roomAt: number]>([
      [SLIDING, DEFAULT_ALGORITHM, 4, false, 1100],
      [SLIDING, { name: 'sliding_window', steps: 5 }, 4, false, 1300],
      [SLIDING, bucket(4), 4, false, 1100],
      [bucket(4), DEFAULT_ALGORITHM, 4, false, 1100],
      [bucket(4), SLIDING, 4, false, 1200],
      [bucket(4), bucket(3), 3, true, 100],
    ])(
      'from %j to %j carries over what counts at once',
      async (from, to, used, isFound, roomAt) => {
        key.use(from, 4);
        const id = await approve({ hits: 3 });
        await at(100);
        await key.change(limitsOf(to, 4));
        await outcome();
        expect(await key.own()).toMatchObject({ algorithm: to, used });
        expect(await release(id)).toBe(isFound);
        if (isFound) return;
        await at(roomAt - 1);
        expect(await outcome({ hits: 4 })).toBe('denied');
        await at(roomAt);
        expect(await outcome({ hits: 4 })).toBe('approved');
      },
    );

    test.each([[SLIDING], [bucket(4)], [DEFAULT_ALGORITHM]])(
      'from fixed windows to %j comes at the boundary, with what is held',
      async (to) => {
        key.use(DEFAULT_ALGORITHM, 4);
        const id = await approve({ hits: 2 });
        const held = await approve({ holdMillis: 3000 });
        await at(100);
        await key.change({ ...limitsOf(to, 4), windowMillis: 2000 });
        expect(await outcome()).toBe('approved');
        expect(await key.own()).toMatchObject({ algorithm: DEFAULT_ALGORITHM, used: 4 });
        await at(1000);
        expect(await outcome()).toBe('approved');
        // A bucket takes what a hold needs when it is given.
        const isBucket = to.name === 'token_bucket';
        expect(await key.own()).toMatchObject({
          algorithm: to,
          windowMillis: 2000,
          used: isBucket ? 1 : 2,
        });
        expect(await release(id)).toBe(false);
        expect(await release(held)).toBe(true);
        expect(await key.used()).toBe(1);
      },
    );

    test('serves waiters who have room by the new one', async () => {
      key.use(SLIDING, 2);
      await approve({ hits: 2 });
      const waiters = [await key.wait(), await key.wait()];
      await at(500);
      await key.change(limitsOf(bucket(2), 2));
      expect(approvedOf(waiters)).toEqual([false, false]);
      await at(999);
      expect(approvedOf(waiters)).toEqual([false, false]);
      await at(1000);
      expect(approvedOf(waiters)).toEqual([true, false]);
      await at(1500);
      expect(approvedOf(waiters)).toEqual([true, true]);
    });
  });
}

const BILLION = 1_000_000_000;
const YEAR = 366 * 24 * 60 * 60 * 1000;

/** The behaviour of every limiter for the greatest and the smallest numbers of such limits. */
export function describeExtremes(name: string, createHarness: HarnessFactory): void {
  describe(`the extremes of limits without fixed windows: ${name}`, () => {
    const key = useTimedKey(createHarness);
    const { check, outcome, approve, release, at, expectRoomAt } = key;
    const use = (algorithm: Algorithm, maxRequests: number, windowMillis: number): Promise<void> =>
      key.change({ ...limitsOf(algorithm, maxRequests), windowMillis });

    test('a billion per second at once, and a million each millisecond', async () => {
      await use(bucket(BILLION), BILLION, WINDOW);
      await approve({ hits: BILLION - 1 });
      await approve();
      expect(await outcome()).toBe('denied');
      await at(1);
      expect(await outcome({ hits: 1_000_001 })).toBe('denied');
      expect(await outcome({ hits: 1_000_000 })).toBe('approved');
      expect(await key.used()).toBe(BILLION);
    });

    test('a billion per year one by one, each 31.6224 ms', async () => {
      await use(bucket(1), BILLION, YEAR);
      expect(await check()).toMatchObject({ quota: { limits: [{ resetMillis: 31.623 }] } });
      await expectRoomAt(32);
    });

    test.each<[algorithm: Algorithm, resetMillis: number]>([
      [SLIDING, 1.1 * YEAR],
      // A billionth of a hit may lack, for what doubles round.
      [bucket(1), 31_622_399_968.378],
    ])('one per year: %j', async (algorithm, resetMillis) => {
      await use(algorithm, 1, YEAR);
      expect(await check()).toMatchObject({ quota: { limits: [{ remaining: 0, resetMillis }] } });
      await at(1000);
      const left = Math.round((resetMillis - 1000) * 1000) / 1000;
      expect(await check()).toMatchObject({
        outcome: 'denied',
        quota: { limits: [{ remaining: 0, resetMillis: left }] },
      });
      expect(await check({ canWait: true, maxWaitMillis: Math.ceil(left) - 1 })).toMatchObject({
        reason: 'turn_too_late',
        turnMillis: left,
      });
    });

    test('a billion in a sliding year', async () => {
      await use(SLIDING, BILLION, YEAR);
      await approve({ hits: BILLION - 1 });
      const id = await approve();
      expect(await outcome()).toBe('denied');
      expect(await release(id)).toBe(true);
      await approve();
      expect(await key.used()).toBe(BILLION);
    });

    test.each([
      [{ name: 'sliding_window', steps: 60 } as const, 2],
      [bucket(1), 1],
    ])('one per millisecond: %j', async (algorithm, roomAt) => {
      await use(algorithm, 1, 1);
      await approve();
      await expectRoomAt(roomAt);
    });
  });
}
