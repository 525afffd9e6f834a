import { type Algorithm, FIXED_WINDOW, type LimitState } from '../../../src/limiter/limits.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits, FurtherLimit } from '../limits.js';
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
    amend: (requestId, hits) => harness.limiter.amend(key.key, requestId, { hits }),
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

    test('with few steps have room again a window and a step later', async () => {
      key.use({ name: 'sliding_window', steps: 2 }, 1);
      await approve();
      await expectRoomAt(1500);
      await expectRoomAt(3000);
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

    test('know an approval for as long as it counts', async () => {
      key.use(SLIDING, 3);
      const [first, second] = [await approve(), await approve()];
      await at(1099);
      expect(await release(first)).toBe(true);
      await at(1100);
      expect(await release(second)).toBe(false);
      expect(await amend(second, 3)).toBeUndefined();
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

    test('that keep what is released count held and released approvals in their steps alone', async () => {
      const starts: FurtherLimit = {
        name: 'starts',
        windowMillis: WINDOW,
        maximum: 2,
        algorithm: SLIDING,
        counts: 'requests',
        keepsReleased: true,
      };
      key.use(FIXED_WINDOW, 20);
      await key.change({ ...limitsOf(FIXED_WINDOW, 20), further: [starts] });
      await approve({ holdMillis: 5000, hits: 3 });
      await release(await approve());
      expect(await key.inspect()).toMatchObject({ limits: [{ used: 3 }, { used: 2 }] });
      await expectRoomAt(1100);
      expect(await key.inspect()).toMatchObject({ limits: [{ used: 4 }, { used: 1 }] });
    });

    test('count on in a longer window that comes into force while somebody waits', async () => {
      await key.change({ ...limitsOf(SLIDING, 2), windowMillis: 10 });
      await approve();
      const waiter = await wait({ hits: 2 });
      await key.change(limitsOf(SLIDING, 2));
      waiter.disconnect();
      await key.harness.quiet();
      // By the shorter window, the key would be idle.
      await at(500);
      expect(await used()).toBe(1);
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
    test('expect the turn of a wait after all that is above a lowered maximum', async () => {
      key.use(SLIDING, 4);
      await approve({ hits: 2 });
      await at(150);
      await approve({ hits: 2 });
      const late = { canWait: true, maxRequests: 1, maxWaitMillis: 1049 };
      expect(await check(late)).toMatchObject({ reason: 'turn_too_late', turnMillis: 1050 });
      const waiter = await wait({ maxWaitMillis: 1050 });
      await at(1199);
      expect(waiter.settled).toBeUndefined();
      await at(1200);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
    });

    test('serve a waiter with more hits than a lowered maximum when nothing counts', async () => {
      key.use(SLIDING, 4);
      await approve();
      await at(150);
      await approve({ hits: 3 });
      const waiter = await wait({ hits: 4 });
      await check({ maxRequests: 2 });
      await at(1199);
      expect(waiter.settled).toBeUndefined();
      await at(1200);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      expect(await used()).toBe(4);
    });

    test('are forgotten with a key that is idle', async () => {
      key.use(SLIDING, 2);
      await approve();
      await at(3999);
      expect(await used()).toBe(0);
      await at(4000);
      expect(await key.inspect()).toBeUndefined();
    });
  });

  describe(`token buckets: ${name}`, () => {
    const key = useTimedKey(createHarness);
    const { check, outcome, approve, wait, release, amend, at, used, expectRoomAt } = key;

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

    test('serve waiters whose times are fractions of a millisecond', async () => {
      key.use(bucket(1), 30);
      await approve();
      const waiters = [await wait(), await wait(), await wait()];
      await at(33);
      expect(approvedOf(waiters)).toEqual([false, false, false]);
      // Redis's clock in this test has whole milliseconds, so that a replica asks up to three times.
      await at(35);
      expect(approvedOf(waiters)).toEqual([true, false, false]);
      await at(102);
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

    test('approve nothing sooner for a release of what has drained', async () => {
      key.use(bucket(1), 10);
      const first = await approve();
      await at(100);
      const second = await approve();
      expect(await release(first)).toBe(true);
      await at(201);
      expect(await release(second)).toBe(false);
      await approve();
      await expectRoomAt(301);
    });

    test('keep the pace after a release of what was approved before it was lowered', async () => {
      key.use(bucket(1), 100);
      const id = await approve();
      await at(10);
      expect(await outcome({ maxRequests: 10 })).toBe('approved');
      await at(20);
      expect(await release(id)).toBe(true);
      await expectRoomAt(110);
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

    test('give back no more than a correction has added, since the level has a bound', async () => {
      key.use(bucket(2), 10);
      await approve();
      const id = await approve();
      expect(await amend(id, 50)).toEqual({});
      expect(await used()).toBe(12);
      expect(await release(id)).toBe(true);
      expect(await used()).toBe(1);
    });

    test('are not raised by the renewal of a hold that a correction could not add in full', async () => {
      key.use(bucket(2), 10);
      const id = await approve({ holdMillis: 10_000 });
      expect(await amend(id, 50)).toMatchObject({ holdMillis: 10_000 });
      await at(500);
      expect(await used()).toBe(7);
      const { limiter } = key.harness;
      expect(await limiter.amend(key.key, id, { holdMillis: 5000 })).toEqual({ holdMillis: 5000 });
      expect(await used()).toBe(7);
    });

    test('say when one more hit fits, also above their burst', async () => {
      key.use(bucket(1), 10);
      const id = await approve();
      expect(await amend(id, 4)).toEqual({});
      expect(await check()).toMatchObject({
        quota: { limits: [{ remaining: 0, resetMillis: 400 }] },
      });
      await expectRoomAt(400);
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

    test('keep what counts while the maximum is 0', async () => {
      key.use(bucket(4), 10);
      await approve({ hits: 4 });
      expect(await check({ maxRequests: 0, canWait: true })).toMatchObject({
        reason: 'queue_full',
      });
      await at(500);
      expect(await check()).toMatchObject({ reason: 'limit_reached' });
      expect(await outcome({ maxRequests: 10 })).toBe('denied');
      await expectRoomAt(600);
    });

    test('serve a waiter with more hits than a lowered burst when they are empty', async () => {
      key.use(bucket(5), 10);
      await approve({ hits: 5 });
      const waiter = await wait({ hits: 5 });
      // The level is the new burst and the new maximum at most.
      await check({ maxRequests: 2 });
      expect(await used()).toBe(4);
      await at(1999);
      expect(waiter.settled).toBeUndefined();
      await at(2000);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      expect(await used()).toBe(4);
      // At the maximum that the waiter came for, all five hits count.
      expect(await outcome({ maxRequests: 5 })).toBe('denied');
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

    test('drain what a lower maximum has cut off at the pace of the higher one', async () => {
      key.use(bucket(5), 10);
      const id = await approve({ hits: 5 });
      expect(await amend(id, 15)).toEqual({});
      const usedAt = async (millis: number, maxRequests: number): Promise<number | undefined> => {
        await at(millis);
        // As many hits as the burst fit into no bucket that is not empty.
        expect(await outcome({ maxRequests, hits: Math.min(maxRequests, 5) })).toBe('denied');
        return used();
      };
      expect(await usedAt(0, 1)).toBe(2);
      expect(await usedAt(500, 10)).toBe(10);
      expect(await usedAt(500, 1)).toBe(2);
      expect(await usedAt(700, 2)).toBe(4);
      expect(await usedAt(1200, 10)).toBe(3);
      await at(1500);
      expect(await outcome({ hits: 5 })).toBe('approved');
    });

    test('have nothing left of what a lower maximum has cut off two windows later', async () => {
      key.use(bucket(5), 10);
      expect(await amend(await approve({ hits: 5 }), 15)).toEqual({});
      expect(await outcome({ maxRequests: 1 })).toBe('denied');
      await at(2000);
      expect(await outcome({ hits: 5, maxRequests: 10 })).toBe('approved');
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

    test('keep a level that is above a burst which was lowered since', async () => {
      key.use(bucket(5), 10);
      const [first, second] = [await approve({ hits: 4 }), await approve()];
      expect(await amend(first, 14)).toEqual({});
      await key.change(limitsOf(bucket(1), 10));
      expect(await outcome()).toBe('denied');
      expect(await used()).toBe(15);
      expect(await release(second)).toBe(true);
      expect(await used()).toBe(14);
      expect(await amend(first, 15)).toEqual({});
      expect(await used()).toBe(14);
      expect(await amend(first, 13)).toEqual({});
      expect(await used()).toBe(13);
    });

    test('keep a level that a request allows when the rules change', async () => {
      key.use(bucket(50), 10);
      await approve({ hits: 50, maxRequests: 100 });
      await key.change(limitsOf(bucket(60), 10));
      expect(await outcome({ hits: 11 })).toBe('denied');
      expect(await key.own()).toMatchObject({ algorithm: bucket(60), maximum: 100, used: 50 });
    });

    test('keep a level that the maximum of a request allows, whatever the rules of its check say', async () => {
      key.use(bucket(50), 50);
      await approve({ hits: 50 });
      await key.change(limitsOf(bucket(50), 2));
      expect(await outcome({ maxRequests: 20 })).toBe('denied');
      expect(await used()).toBe(40);
    });

    test('let waiters have 30 ms more at once after a pause, and no more than that', async () => {
      key.use(bucket(1), 100);
      await approve();
      await key.harness.limiter.pause(key.key, 500);
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

    test('let waiters have no more at once because the maximum changes', async () => {
      key.use(bucket(1), 10);
      await approve();
      await key.harness.limiter.pause(key.key, 101);
      const waiters = [await wait(), await wait()];
      // The bucket is empty from now on.
      await at(100);
      expect(await outcome({ maxRequests: 20 })).toBe('denied');
      await at(149);
      expect(approvedOf(waiters)).toEqual([true, false]);
      await at(150);
      expect(approvedOf(waiters)).toEqual([true, true]);
    });

    test('are forgotten with a key that is idle', async () => {
      key.use(bucket(1), 1);
      await approve();
      await at(3999);
      expect(await used()).toBe(0);
      await at(4000);
      expect(await key.inspect()).toBeUndefined();
    });
  });

  describe(`a change of the algorithm by rules: ${name}`, () => {
    const key = useTimedKey(createHarness);
    const { approve, release, outcome, at } = key;

    // What counts after one more check, whether the id from before is found, and when there is room for four hits.
    test.each<[from: Algorithm, to: Algorithm, used: number, isFound: boolean, roomAt: number]>([
      [SLIDING, FIXED_WINDOW, 4, false, 1100],
      [SLIDING, { name: 'sliding_window', steps: 5 }, 4, false, 1300],
      [SLIDING, bucket(4), 4, false, 1100],
      [bucket(4), FIXED_WINDOW, 4, false, 1100],
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

    test.each([[SLIDING], [bucket(4)], [FIXED_WINDOW]])(
      'from fixed windows to %j comes at the boundary, with what is held',
      async (to) => {
        key.use(FIXED_WINDOW, 4);
        const id = await approve({ hits: 2 });
        const held = await approve({ holdMillis: 3000 });
        await at(100);
        await key.change({ ...limitsOf(to, 4), windowMillis: 2000 });
        expect(await outcome()).toBe('approved');
        expect(await key.own()).toMatchObject({ algorithm: FIXED_WINDOW, used: 4 });
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

    test('to fixed windows keeps what is held beyond them', async () => {
      key.use(SLIDING, 2);
      await approve({ holdMillis: 1500 });
      await at(100);
      await key.change(limitsOf(FIXED_WINDOW, 2));
      await approve();
      expect(await key.used()).toBe(2);
      await at(1100);
      await approve();
      await key.expectRoomAt(1500);
    });

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

    test('a billion per second one by one', async () => {
      await use(bucket(1), BILLION, WINDOW);
      expect(await check()).toMatchObject({ quota: { limits: [{ resetMillis: 0.001 }] } });
      await expectRoomAt(1);
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
