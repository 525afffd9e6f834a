import { exceededLimit } from '../../../src/service/denying-limit.js';
import { type Decision, isVerdict } from '../../../src/limiter/limiter.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits, FurtherLimit } from '../limits.js';
import { useKey } from './use-key.js';

/** Ten times as many as its window allows, so that only the further limits deny. */
const OWN: DeclaredLimits = { windowMillis: 1000, maxRequests: 20, maxRequestsInQueue: 5 };

const MINUTE: FurtherLimit = {
  name: 'minute',
  windowMillis: 60_000,
  maximum: 3,
  counts: 'requests',
  keepsReleased: false,
};
const TOKENS: FurtherLimit = {
  name: 'tokens',
  windowMillis: 10_000,
  maximum: 50,
  counts: 'hits',
  keepsReleased: false,
};
const STARTS: FurtherLimit = { ...MINUTE, name: 'starts', keepsReleased: true };

/** The behaviour of every limiter for several limits of a key. */
export function describeFurtherLimits(name: string, createHarness: HarnessFactory): void {
  describe(`further limits: ${name}`, () => {
    let limits: DeclaredLimits;
    beforeEach(() => {
      limits = { ...OWN, further: [MINUTE, TOKENS] };
    });
    const { harness, key, check, outcome, approve, wait, release, inspect } = useKey(
      createHarness,
      () => limits,
    );
    const amend = (id: string, hits: number) =>
      harness.limiter.ask('amend', { key, requestId: id, hits });
    const approvedOf = async (limit: FurtherLimit): Promise<number | undefined> =>
      (await inspect())?.limits.find(({ name }) => name === limit.name)?.used;
    /** Other rules, of which the limiter learns. */
    const setFurther = async (...further: FurtherLimit[]): Promise<void> => {
      limits = { ...OWN, further };
      harness.limiter.limitsChanged();
      await harness.quiet();
    };

    describe('a check', () => {
      test('takes from all of them, and the quota lists each', async () => {
        expect(await check({ hits: 4 })).toMatchObject({
          outcome: 'approved',
          quota: {
            limits: [
              { ...ownLimit(1000, 20), remaining: 16, resetMillis: 1000 },
              { ...MINUTE, remaining: 2, resetMillis: 60_000 },
              { ...TOKENS, remaining: 46, resetMillis: 10_000 },
            ],
          },
        });
        expect(await inspect()).toMatchObject({
          limits: [
            { ...ownLimit(1000, 20), used: 4, millisToWindowEnd: 1000 },
            { ...MINUTE, used: 1, millisToWindowEnd: 60_000 },
            { ...TOKENS, used: 4, millisToWindowEnd: 10_000 },
          ],
        });
      });

      test('is denied by one of them, and takes from none', async () => {
        for (let i = 0; i < 3; i += 1) await approve({ hits: 2 });
        await harness.advance(1000);
        const denied = await check();
        expect(denied).toMatchObject({ outcome: 'denied', reason: 'limit_reached' });
        expect(exceeded(denied)).toEqual(['minute', 59_000]);
        expect(await inspect()).toMatchObject({
          denied: 1,
          limits: [{ used: 0 }, { used: 3 }, { used: 6 }],
        });
      });

      test('that several deny is told of the one that has room last', async () => {
        for (let i = 0; i < 3; i += 1) await approve({ hits: 6 });
        expect(exceeded(await check({ hits: 3 }), 3)).toEqual(['minute', 60_000]);
        await setFurther({ ...MINUTE, maximum: 9 }, { ...TOKENS, maximum: 20 });
        expect(exceeded(await check({ hits: 3 }), 3)).toEqual(['tokens', 10_000]);
      });

      test('with more hits than the maximum of one is rejected, in whichever window', async () => {
        await setFurther({ ...TOKENS, maximum: 10 });
        expect(await check({ hits: 11 })).toMatchObject({ reason: 'too_many_hits' });
        expect(await outcome({ hits: 10 })).toBe('approved');
      });

      test('of a batch sees what the checks before it have left', async () => {
        const decisions = await Promise.all(Array.from({ length: 4 }, () => check({ hits: 5 })));
        expect(
          decisions.map((decision) => [
            decision.outcome,
            quotaOf(decision).limits.map(({ remaining }) => remaining),
          ]),
        ).toEqual([
          ['approved', [15, 2, 45]],
          ['approved', [10, 1, 40]],
          ['approved', [5, 0, 35]],
          ['denied', [5, 0, 35]],
        ]);
      });
    });

    describe('windows', () => {
      test('follow one another from the first check, each limit its own', async () => {
        await approve();
        await harness.advance(9999);
        expect(await approvedOf(TOKENS)).toBe(1);
        await harness.advance(1);
        expect([await approvedOf(TOKENS), await approvedOf(MINUTE)]).toEqual([0, 1]);
        await check({ hits: 2 });
        await harness.advance(9999);
        expect(await approvedOf(TOKENS)).toBe(2);
        await harness.advance(40_000);
        await check();
        expect(await approvedOf(MINUTE)).toBe(3);
        await harness.advance(1);
        expect(await approvedOf(MINUTE)).toBe(0);
      });

      test('keep the key until the last of them ends', async () => {
        await approve();
        await harness.advance(59_999);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }, { used: 1 }, { used: 0 }] });
        await harness.advance(1);
        expect(await inspect()).toBeUndefined();
      });
    });

    describe('a release', () => {
      test('gives back to each window that goes on', async () => {
        const first = await approve({ hits: 4 });
        await harness.advance(1000);
        expect(await release(first)).toBe(true);
        expect([await approvedOf(MINUTE), await approvedOf(TOKENS)]).toEqual([0, 0]);
        expect(await release(first)).toBe(false);
      });

      test('serves the waiters', async () => {
        const [first] = await Promise.all([approve(), approve(), approve()]);
        await harness.advance(1000);
        const waiter = await wait();
        expect(await release(first)).toBe(true);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved', waited: true });
        expect(await approvedOf(MINUTE)).toBe(3);
      });

      test('gives nothing back to a limit that keeps what is released', async () => {
        await setFurther(STARTS);
        const first = await approve();
        expect(await release(first)).toBe(true);
        expect([await approvedOf(STARTS), (await inspect())?.limits[0].used]).toEqual([1, 0]);
        const second = await approve();
        await harness.advance(1000);
        expect(await release(second)).toBe(false);
        expect(await approvedOf(STARTS)).toBe(2);
      });
    });

    describe('a correction', () => {
      test('acts on each window that goes on, and not on those that count requests', async () => {
        const first = await approve({ hits: 10 });
        await harness.advance(1000);
        expect(await amend(first, 25)).toEqual({});
        expect([await approvedOf(MINUTE), await approvedOf(TOKENS)]).toEqual([1, 25]);
        expect(await amend(first, 5)).toEqual({});
        expect(await approvedOf(TOKENS)).toBe(5);
        await harness.advance(9000);
        expect(await amend(first, 6)).toEqual({});
        expect([await approvedOf(MINUTE), await approvedOf(TOKENS)]).toEqual([1, 0]);
        await harness.advance(50_000);
        expect(await amend(first, 7)).toBeUndefined();
      });

      test('downwards serves the waiters, and upwards nobody is approved until there is room', async () => {
        await setFurther({ ...TOKENS, maximum: 20 });
        const first = await approve({ hits: 10 });
        await amend(first, 25);
        await harness.advance(1000);
        expect(exceeded(await check())).toEqual(['tokens', 9000]);
        const waiter = await wait({ hits: 10 });
        await amend(first, 11);
        expect(waiter.settled).toBeUndefined();
        await amend(first, 10);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
        expect(await approvedOf(TOKENS)).toBe(20);
      });
    });

    describe('a waiter', () => {
      test('waits until all of them have room', async () => {
        await setFurther({ ...MINUTE, maximum: 1 }, { ...TOKENS, maximum: 1 });
        await approve();
        const waiter = await wait();
        await harness.advance(59_999);
        expect(waiter.settled).toBeUndefined();
        await harness.advance(1);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved', waited: true });
      });

      test('above a lowered maximum, under which nothing counts, waits for the others alone', async () => {
        const starts = { ...TOKENS, maximum: 10, keepsReleased: true };
        limits = {
          windowMillis: 90_000,
          maxRequests: 10,
          maxRequestsInQueue: 5,
          further: [starts],
        };
        await release(await approve({ hits: 5 }));
        const waiter = await wait({ hits: 8 });
        await check({ maxRequests: 4 });
        await harness.advance(TOKENS.windowMillis);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      });

      test('is denied at once if its turn comes later than it can wait', async () => {
        await setFurther({ ...MINUTE, maximum: 1 });
        await approve();
        const late = await check({ canWait: true, maxWaitMillis: 59_999 });
        expect(late).toMatchObject({ reason: 'turn_too_late', turnMillis: 60_000 });
        const waiter = await wait({ maxWaitMillis: 60_000 });
        const next = await check({ canWait: true, maxWaitMillis: 119_999 });
        expect(next).toMatchObject({ reason: 'turn_too_late', turnMillis: 120_000 });
        await harness.advance(60_000);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      });
    });

    describe('a hold', () => {
      test('counts in every window of each, and its end gives the room to the waiters', async () => {
        await setFurther({ ...TOKENS, maximum: 10 });
        const held = await approve({ hits: 7, holdMillis: 25_000 });
        await harness.advance(10_000);
        expect(await approvedOf(TOKENS)).toBe(7);
        expect(await outcome({ hits: 4 })).toBe('denied');
        const waiter = await wait({ hits: 4 });
        expect(await release(held)).toBe(true);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
        expect(await approvedOf(TOKENS)).toBe(4);
      });

      test('does not count in later windows of a limit that keeps what is released', async () => {
        await setFurther({ ...STARTS, maximum: 1 });
        await approve({ holdMillis: 70_000 });
        expect(await outcome()).toBe('denied');
        await harness.advance(60_000);
        expect([await approvedOf(STARTS), (await inspect())?.held]).toEqual([0, 1]);
        expect(await outcome()).toBe('approved');
      });

      test('with a limit of starts bounds concurrent work and starts in a window', async () => {
        limits = { ...OWN, maxRequests: 2, further: [STARTS] };
        const ids = [await approve({ holdMillis: 5000 }), await approve({ holdMillis: 5000 })];
        const waiter = await wait({ holdMillis: 5000 });
        await release(ids[0] ?? '');
        await waiter.decision;
        expect(await approvedOf(STARTS)).toBe(3);
        await release(ids[1] ?? '');
        expect(exceeded(await check({ holdMillis: 5000 }))).toEqual(['starts', 60_000]);
      });
    });

    describe('other rules', () => {
      test('that remove a limit serve its waiters at once', async () => {
        await setFurther({ ...MINUTE, maximum: 1 });
        await approve();
        const waiter = await wait();
        await setFurther();
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
        expect((await inspect())?.limits).toHaveLength(1);
      });

      test('that raise its maximum serve as many as fit', async () => {
        await setFurther({ ...MINUTE, maximum: 1 });
        await approve();
        const [first, second] = [await wait(), await wait()];
        await setFurther({ ...MINUTE, maximum: 2 });
        expect(await first.decision).toMatchObject({ outcome: 'approved' });
        expect(second.settled).toBeUndefined();
        expect(await approvedOf(MINUTE)).toBe(2);
      });

      test('that change its window keep what was approved while that goes on', async () => {
        await approve();
        await setFurther({ ...MINUTE, windowMillis: 5000 });
        await check();
        await harness.advance(4999);
        expect(await approvedOf(MINUTE)).toBe(2);
        await harness.advance(1);
        await check();
        expect(await approvedOf(MINUTE)).toBe(1);
        await setFurther({ ...MINUTE, windowMillis: 30_000 });
        await check();
        await harness.advance(29_999);
        expect(await approvedOf(MINUTE)).toBe(2);
      });

      test('that change what it counts begin it again', async () => {
        await approve({ hits: 5 });
        await setFurther({ ...MINUTE, counts: 'hits', maximum: 10 });
        await check({ hits: 2 });
        expect(await approvedOf(MINUTE)).toBe(2);
      });

      test('with another window of the key come into force as a whole, at its boundary', async () => {
        await approve();
        limits = { ...OWN, windowMillis: 500, further: [{ ...MINUTE, maximum: 1 }] };
        expect(await outcome()).toBe('approved');
        await harness.advance(1000);
        expect(exceeded(await check())).toEqual(['minute', 59_000]);
      });
    });

    test('a turn under rules that wait for the boundary is told by these', async () => {
      limits = { windowMillis: 2000, maxRequests: 1, maxRequestsInQueue: 9, further: [MINUTE] };
      for (let i = 0; i < 3; i += 1) {
        await harness.advance(2000);
        await approve();
      }
      await wait();
      await wait();
      limits = { windowMillis: 6000, maxRequests: 4, maxRequestsInQueue: 9 };
      harness.limiter.limitsChanged();
      expect(await harness.limiter.ask('peek', { key })).toMatchObject({ turnMillis: 2000 });
      const waiter = await wait({ maxWaitMillis: 2000 });
      expect(await check({ canWait: true, maxWaitMillis: 1999 })).toMatchObject({
        reason: 'turn_too_late',
        turnMillis: 2000,
      });
      await harness.advance(2000);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
    });

    test('a pause leaves nothing of any of them', async () => {
      await approve();
      await harness.limiter.ask('pause', { key, millis: 2500 });
      expect(await check()).toMatchObject({
        reason: 'paused',
        quota: {
          limits: [
            { remaining: 0, resetMillis: 2500 },
            { remaining: 0, resetMillis: 2500 },
            { remaining: 0, resetMillis: 2500 },
          ],
        },
      });
    });
  });
}

function quotaOf(decision: Decision) {
  if (!isVerdict(decision) || !decision.quota) throw new Error('no quota');
  return decision.quota;
}

/** The limit that denies a check with these hits, and when it has room. */
function exceeded(decision: Decision, hits?: number): [name: string | undefined, millis: number] {
  const limit = decision.outcome === 'denied' && exceededLimit(quotaOf(decision), hits);
  if (!limit) throw new Error(`not denied by a limit: ${decision.outcome}`);
  return [limit.name, limit.resetMillis];
}
