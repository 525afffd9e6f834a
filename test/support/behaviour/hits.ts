import type { CheckRequest, Decision } from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { uniqueKey } from '../unique-key.js';
import type { WatchedCheck } from '../watched-check.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 10, maxRequestsInQueue: 5 };

/** The behaviour of every limiter for checks that ask for many approvals at once. */
export function describeHits(name: string, createHarness: HarnessFactory): void {
  describe(`hits: ${name}`, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, restart, release, inspect } = subject;
    const check = (hits: number, more: Partial<CheckRequest> = {}): Promise<Decision> =>
      subject.check({ hits, ...more });
    const approve = (hits: number): Promise<string> => subject.approve({ hits });
    const wait = (hits?: number): Promise<WatchedCheck> => subject.wait({ hits });

    describe('a check', () => {
      test('counts as many approvals as it has hits, and says how many are left', async () => {
        expect(await check(4)).toMatchObject({
          outcome: 'approved',
          requestId: expect.stringMatching(/^[-0-9a-f]{36}$/) as unknown,
          quota: { limits: [{ maximum: 10, remaining: 6 }] },
        });
        expect(await inspect()).toMatchObject({ limits: [{ used: 4 }], denied: 0 });
        expect(await check(1)).toMatchObject({ quota: { limits: [{ remaining: 5 }] } });
      });

      test('may take all that are left', async () => {
        await approve(3);
        expect(await check(7)).toMatchObject({
          outcome: 'approved',
          quota: { limits: [{ remaining: 0 }] },
        });
        expect(await check(1)).toMatchObject({ outcome: 'denied' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 10 }], denied: 1 });
      });

      test('of one more than are left counts as one denial, and takes nothing', async () => {
        await approve(3);
        expect(await check(8)).toMatchObject({
          outcome: 'denied',
          reason: 'limit_reached',
          quota: { limits: [{ remaining: 7 }] },
        });
        expect(await inspect()).toMatchObject({ limits: [{ used: 3 }], denied: 1 });
        expect(await check(7)).toMatchObject({ outcome: 'approved' });
      });

      test('of more than the maximum is denied as such, and not counted', async () => {
        expect(await check(11)).toMatchObject({
          outcome: 'denied',
          reason: 'too_many_hits',
          quota: { limits: [{ maximum: 10 }] },
        });
        expect(await check(11, { canWait: true })).toMatchObject({ reason: 'too_many_hits' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }], denied: 0, waiting: 0 });
      });

      test('does not take the room of waiters', async () => {
        await approve(10);
        const waiter = await wait();
        expect(await check(2)).toMatchObject({ outcome: 'denied' });
        await harness.advance(WINDOW);
        expect(await check(10)).toMatchObject({
          outcome: 'denied',
          quota: { limits: [{ remaining: 9 }] },
        });
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
        expect(await check(9)).toMatchObject({ outcome: 'approved' });
      });

      test('is decided in its order among the checks of its batch', async () => {
        const hits = [1, 4, 1, 6, 3, 1, 1];
        const decisions = await Promise.all(hits.map((each) => check(each)));
        expect(
          decisions.map((each) => [
            each.outcome,
            'quota' in each && each.quota?.limits[0].remaining,
          ]),
        ).toEqual([
          ['approved', 9],
          ['approved', 5],
          ['approved', 4],
          ['denied', 4],
          ['approved', 1],
          ['approved', 0],
          ['denied', 0],
        ]);
        expect(await inspect()).toMatchObject({ limits: [{ used: 10 }], denied: 2 });
      });
    });

    test('a check takes one of the ids that may be stored, whatever its hits', async () => {
      await restart(LIMITS, { maxIdsPerKey: 2 });
      expect(await check(6)).toMatchObject({ outcome: 'approved' });
      expect(await check(1)).toMatchObject({ outcome: 'approved' });
      await expect(check(3)).rejects.toMatchObject({ reason: 'key_full' });
      await expect(check(1)).rejects.toMatchObject({ reason: 'key_full' });
      // If the maximum also has no room for all hits, the check is denied.
      expect(await check(4)).toMatchObject({ reason: 'limit_reached' });
      expect(await inspect()).toMatchObject({ limits: [{ used: 7 }], denied: 1 });
    });

    describe('a release', () => {
      test('gives all hits back, once', async () => {
        const requestId = await approve(4);
        await approve(2);
        expect(await release(requestId)).toBe(true);
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }] });
        expect(await release(requestId)).toBe(false);
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }] });
        expect(await check(8)).toMatchObject({ outcome: 'approved' });
      });
    });

    describe('a correction', () => {
      const amend = async (requestId: string, hits: number): Promise<boolean> =>
        (await harness.limiter.ask('amend', { key, requestId, hits })) !== undefined;

      test('changes the hits of an approval, once or twice alike', async () => {
        const [one, four] = [await approve(1), await approve(4)];
        for (const times of [1, 2]) {
          expect([times, await amend(one, 3), await amend(four, 1)]).toEqual([times, true, true]);
          expect(await inspect()).toMatchObject({ limits: [{ used: 4 }] });
        }
        expect(await release(one)).toBe(true);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }] });
      });

      test('may exceed the maximum, and then nobody is approved until there is room', async () => {
        const [one, four] = [await approve(1), await approve(4)];
        expect(await amend(four, 40)).toBe(true);
        expect(await inspect()).toMatchObject({ limits: [{ used: 41 }] });
        expect(await check(1)).toMatchObject({
          reason: 'limit_reached',
          quota: { limits: [{ remaining: 0 }] },
        });
        const waiter = await wait(2);
        expect(await release(one)).toBe(true);
        expect(await amend(four, 9)).toBe(true);
        await harness.quiet();
        expect(waiter.settled).toBeUndefined();
        expect(await amend(four, 8)).toBe(true);
        expect(await waiter.decision).toMatchObject({ waited: true });
        expect(await inspect()).toMatchObject({ limits: [{ used: 10 }] });
      });

      test('gives an approval ten times the maximum at most, and leaves it what it has', async () => {
        const [one, four] = [await approve(1), await approve(4)];
        const correct = (requestId: string, hits: number) =>
          harness.limiter.ask('amend', { key, requestId, hits });
        const rejected = { rejected: 'hits', maxHits: 100 };
        expect(await correct(four, 101)).toEqual(rejected);
        expect(await inspect()).toMatchObject({ limits: [{ used: 5 }] });
        expect(await correct(four, 100)).toEqual({});
        // It can not be raised step by step.
        expect(await correct(four, 101)).toEqual(rejected);
        await check(1, { maxRequests: 5 });
        expect(await correct(four, 101)).toEqual(rejected);
        expect(await correct(one, 51)).toEqual({ ...rejected, maxHits: 50 });
        expect([await correct(four, 100), await correct(four, 99)]).toEqual([{}, {}]);
        expect(await correct(four, 100)).toEqual({ ...rejected, maxHits: 99 });
        expect(await correct('of nothing', 1000)).toBeUndefined();
        expect(await inspect()).toMatchObject({ limits: [{ used: 100 }] });
      });

      test('finds no approval that counts no longer', async () => {
        const [released, ended] = [await approve(1), await approve(1)];
        await release(released);
        expect(await amend(released, 2)).toBe(false);
        await harness.advance(WINDOW);
        expect(await amend(ended, 2)).toBe(false);
        expect(await amend('of nothing', 2)).toBe(false);
        expect(
          await harness.limiter.ask('amend', { key: uniqueKey(), requestId: ended, hits: 2 }),
        ).toBe(undefined);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }] });
      });
    });

    describe('a waiter', () => {
      test('waits until all of its hits are free, and is not overtaken', async () => {
        const [first, second] = [await approve(3), await approve(5)];
        const waiters = [await wait(6), await wait(1)];
        expect(await check(1)).toMatchObject({ reason: 'limit_reached' });
        expect(await release(first)).toBe(true);
        await harness.quiet();
        expect(waiters.map(({ settled }) => settled)).toEqual([undefined, undefined]);
        expect(await release(second)).toBe(true);
        for (const { decision } of waiters) expect(await decision).toMatchObject({ waited: true });
        expect(await inspect()).toMatchObject({ limits: [{ used: 7 }], waiting: 0 });
      });

      test('that needs more than a maximum that was lowered since gets a window for itself', async () => {
        await approve(6);
        const [large, small] = [await wait(8), await wait(1)];
        await check(1, { maxRequests: 3 });
        await harness.advance(WINDOW);
        expect(await large.decision).toMatchObject({ waited: true });
        expect(await inspect()).toMatchObject({ limits: [{ used: 8 }], waiting: 1 });
        await harness.advance(WINDOW);
        expect(await small.decision).toMatchObject({ waited: true });
      });

      test('with a longest wait is denied at once only if its turn can not come in time', async () => {
        await approve(10);
        const late = check(9, { canWait: true, maxWaitMillis: WINDOW - 1 });
        expect(await late).toMatchObject({ reason: 'turn_too_late', turnMillis: WINDOW });
        await wait(2);
        const second = check(10, { canWait: true, maxWaitMillis: WINDOW });
        expect(await second).toMatchObject({ reason: 'turn_too_late', turnMillis: WINDOW * 2 });
      });

      test('has its turn by hits, though fewer ids may be stored than a window has hits', async () => {
        await restart(LIMITS, { maxIdsPerKey: 2 });
        await approve(6);
        for (let waiting = 0; waiting < 3; waiting += 1) await wait(5);
        const check = await subject.wait({ hits: 1, maxWaitMillis: WINDOW });
        expect(check.settled).toBeUndefined();
        expect(await inspect()).toMatchObject({ waiting: 4 });
      });
    });
  });
}
