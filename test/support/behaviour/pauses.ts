import { ownLimit } from '../../../src/limiter/limits.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { startWaiting } from '../watched-check.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 5 };

/** The behaviour of every limiter for pauses of a key. */
export function describePauses(name: string, createHarness: HarnessFactory): void {
  describe(`a pause: ${name}`, () => {
    const { harness, key, check, inspect } = useKey(createHarness, LIMITS);
    const pause = (millis: number, canShorten?: boolean): Promise<number> =>
      harness.limiter.ask('pause', { key, millis, canShorten });

    test('denies checks, with nothing left until it ends', async () => {
      await pause(2500);
      expect(await check()).toEqual({
        outcome: 'denied',
        reason: 'paused',
        quota: { limits: [{ ...ownLimit(WINDOW, 2), remaining: 0, resetMillis: 2500 }] },
      });
      expect(await inspect()).toMatchObject({
        limits: [{ used: 0 }],
        denied: 1,
        pausedMillis: 2500,
      });
      await harness.advance(2499);
      expect(await check()).toMatchObject({
        reason: 'paused',
        quota: { limits: [{ resetMillis: 1 }] },
      });
      await harness.advance(1);
      expect(await inspect()).toMatchObject({ pausedMillis: 0 });
      expect(await check()).toMatchObject({
        outcome: 'approved',
        quota: { limits: [{ remaining: 1 }] },
      });
    });

    test('leaves approvals and their release as they are', async () => {
      const approved = await check();
      if (approved.outcome !== 'approved') throw new Error(approved.outcome);
      await pause(5000);
      expect(await inspect()).toMatchObject({ limits: [{ used: 1 }] });
      expect(await harness.limiter.ask('release', { key, requestId: approved.requestId })).toBe(
        true,
      );
      expect(await check()).toMatchObject({ reason: 'paused' });
    });

    test('lets waiters keep their places until it ends, also over windows', async () => {
      await check();
      await check();
      const first = await startWaiting(harness.limiter, key);
      await pause(2500);
      const second = await startWaiting(harness.limiter, key);
      await harness.advance(2499);
      expect([first.settled, second.settled]).toEqual([undefined, undefined]);
      expect(await inspect()).toMatchObject({ waiting: 2 });
      await harness.advance(1);
      expect(await first.decision).toMatchObject({ outcome: 'approved', waited: true });
      expect(await second.decision).toMatchObject({ outcome: 'approved', waited: true });
    });

    test('denies a wait at once that would end before', async () => {
      await pause(1500);
      const tooShort = await check({ canWait: true, maxWaitMillis: 1499 });
      expect(tooShort).toMatchObject({ reason: 'turn_too_late', turnMillis: 1500 });
    });

    test('ends at once when it is set to 0, which serves the queue', async () => {
      await pause(60_000);
      const waiter = await startWaiting(harness.limiter, key);
      await pause(0);
      await harness.quiet();
      expect(await waiter.decision).toMatchObject({ outcome: 'approved', waited: true });
      expect(await inspect()).toMatchObject({ pausedMillis: 0 });
    });

    test('keeps its key for as long as it lasts', async () => {
      await pause(60_000);
      await harness.advance(59_999);
      expect(await check()).toMatchObject({ reason: 'paused' });
    });

    test('replaces an earlier one, or only lengthens it', async () => {
      expect(await pause(30_000)).toBe(30_000);
      await harness.advance(1000);
      expect([await pause(1000, false), await pause(0, false)]).toEqual([29_000, 29_000]);
      expect(await pause(40_000, false)).toBe(40_000);
      expect(await inspect()).toMatchObject({ pausedMillis: 40_000 });
      expect([await pause(1000), await pause(0), await pause(500, false)]).toEqual([1000, 0, 500]);
    });

    test('of 0 makes no key', async () => {
      expect(await pause(0)).toBe(0);
      expect(await inspect()).toBeUndefined();
    });
  });
}
