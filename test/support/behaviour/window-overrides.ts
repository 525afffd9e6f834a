import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { useKey } from './use-key.js';

const LIMITS: DeclaredLimits = { windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 5 };

/** The behaviour of every limiter for windows whose length requests set. */
export function describeWindowOverrides(name: string, createHarness: HarnessFactory): void {
  describe(`a window's length that a request sets: ${name}`, () => {
    let limits: DeclaredLimits;
    beforeEach(() => {
      limits = LIMITS;
    });
    const { harness, check, wait, inspect } = useKey(createHarness, () => limits);
    const lengthNow = async (): Promise<number | undefined> =>
      (await inspect())?.limits[0].windowMillis;

    test('counts at once on the first check of a key, which has no window in progress', async () => {
      expect(await check({ windowMillis: 3000 })).toMatchObject({
        quota: { limits: [{ resetMillis: 3000, windowMillis: 3000 }] },
      });
      await check();
      await harness.advance(2999);
      expect(await check()).toMatchObject({ outcome: 'denied' });
      // And again after the key was removed, which a denial postpones.
      await harness.advance(1 + 3 * 3000);
      expect(await inspect()).toBeUndefined();
      expect(await check({ windowMillis: 2000 })).toMatchObject({
        quota: { limits: [{ resetMillis: 2000 }] },
      });
    });

    test('counts from the next window on, for all later checks', async () => {
      await check();
      expect(await check({ windowMillis: 3000 })).toMatchObject({
        quota: { limits: [{ resetMillis: 1000 }] },
      });
      expect(await lengthNow()).toBe(1000);
      await harness.advance(1000);
      expect(await check()).toMatchObject({
        outcome: 'approved',
        quota: { limits: [{ resetMillis: 3000, windowMillis: 3000 }] },
      });
      expect(await lengthNow()).toBe(3000);
      await check();
      await harness.advance(2999);
      expect(await check()).toMatchObject({
        outcome: 'denied',
        quota: { limits: [{ resetMillis: 1 }] },
      });
      await harness.advance(1);
      expect(await check()).toMatchObject({
        outcome: 'approved',
        quota: { limits: [{ resetMillis: 3000 }] },
      });
    });

    test('that is the current one keeps it if the rules change', async () => {
      await check({ windowMillis: 1000 });
      limits = { ...LIMITS, windowMillis: 5000 };
      await harness.advance(1000);
      expect(await check()).toMatchObject({ quota: { limits: [{ resetMillis: 1000 }] } });
    });

    test('is the time that waiters wait', async () => {
      await check({ windowMillis: 3000 });
      await check();
      const waiter = await wait();
      await harness.advance(2999);
      expect(waiter.settled).toBeUndefined();
      await harness.advance(1);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
    });

    test('goes when the rules forbid it: with the next window', async () => {
      await check({ windowMillis: 3000 });
      await check();
      limits = {
        ...LIMITS,
        ceilings: { maxRequests: 5, maxRequestsInQueue: 5, windowMillis: 2000 },
      };
      expect(await check()).toMatchObject({ quota: { limits: [{ resetMillis: 3000 }] } });
      await harness.advance(3000);
      expect(await check()).toMatchObject({ quota: { limits: [{ resetMillis: 1000 }] } });
    });
  });
}
