import type { RemainingReport } from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits, FurtherLimit } from '../limits.js';
import { startWaiting } from '../watched-check.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
const LIMITS: DeclaredLimits = {
  windowMillis: WINDOW,
  maxRequests: 10,
  maxRequestsInQueue: 5,
};

/** A limit of hits that outlasts windows of the key. */
const TOKENS: FurtherLimit = {
  name: 'tokens',
  windowMillis: 5000,
  maximum: 100,
  counts: 'hits',
  keepsReleased: false,
};

const HOLD = 60_000;

const PACE: FurtherLimit = {
  ...TOKENS,
  name: 'pace',
  algorithm: { name: 'token_bucket', burst: 20 },
};

let limits: DeclaredLimits;

/** A key with the limits that a test sets. */
function useLimits(createHarness: HarnessFactory) {
  beforeEach(() => {
    limits = LIMITS;
  });
  return useKey(createHarness, () => limits);
}

/** The behaviour of every limiter for hits that are given back without their approvals. */
export function describeRefunds(name: string, createHarness: HarnessFactory): void {
  describe(`a refund of hits: ${name}`, () => {
    const { harness, key, check, approve, outcome, release, inspect } = useLimits(createHarness);
    const refund = (hits: number) => harness.limiter.ask('refund', { key, hits });
    const used = async () => (await inspect())?.limits.map((limit) => limit.used);

    test('makes room at once, and no more than approvals have taken', async () => {
      await approve({ hits: 10 });
      expect(await outcome()).toBe('denied');
      expect(await refund(4)).toBe(4);
      expect(await used()).toEqual([6]);
      expect(await outcome({ hits: 5 })).toBe('denied');
      expect(await outcome({ hits: 4 })).toBe('approved');
      expect(await refund(1000)).toBe(10);
      expect(await used()).toEqual([0]);
      expect(await refund(1)).toBe(0);
      await approve();
      await approve();
      expect(await refund(1)).toBe(1);
      expect(await used()).toEqual([1]);
    });

    test('of a key that does not exist does nothing, and creates none', async () => {
      expect(await refund(1)).toBe(0);
      expect(await inspect()).toBeUndefined();
    });

    test('serves the queue in its order', async () => {
      await approve({ hits: 10 });
      const first = await startWaiting(harness.limiter, key, { hits: 3 });
      const second = await startWaiting(harness.limiter, key);
      await refund(2);
      await harness.quiet();
      expect([first.settled, second.settled]).toEqual([undefined, undefined]);
      await refund(2);
      expect(await first.decision).toMatchObject({ outcome: 'approved', waited: true });
      expect(await second.decision).toMatchObject({ outcome: 'approved', waited: true });
      expect(await used()).toEqual([10]);
    });

    test('leaves what is held', async () => {
      const held = await approve({ hits: 7, holdMillis: HOLD });
      await approve({ hits: 2 });
      expect(await refund(5)).toBe(2);
      expect(await used()).toEqual([7]);
      expect(await refund(5)).toBe(0);
      expect(await release(held)).toBe(true);
      expect(await used()).toEqual([0]);
    });

    test('of hits whose approvals are released as well counts once', async () => {
      const ids = [await approve({ hits: 4 }), await approve({ hits: 4 })];
      expect(await refund(6)).toBe(6);
      expect(await release(ids[0]!)).toBe(true);
      expect(await used()).toEqual([0]);
      await approve({ hits: 3 });
      expect(await release(ids[1]!)).toBe(true);
      expect(await used()).toEqual([0]);
    });

    test('leaves what a vendor counts', async () => {
      await approve({ hits: 3 });
      await harness.limiter.ask('reportRemaining', { key, remaining: 4 });
      expect(await refund(9)).toBe(3);
      expect(await used()).toEqual([6]);
      await approve({ hits: 4 });
      expect(await outcome()).toBe('denied');
    });

    describe('in a key with several limits', () => {
      test('is of each limit that counts hits and gives back what is released', async () => {
        const further = [
          TOKENS,
          { ...TOKENS, name: 'kept', keepsReleased: true },
          { ...TOKENS, name: 'calls', counts: 'requests' as const },
          { ...TOKENS, name: 'pace', algorithm: { name: 'token_bucket', burst: 50 } as const },
          { ...TOKENS, name: 'slides', algorithm: { name: 'sliding_window', steps: 5 } as const },
        ];
        limits = { ...LIMITS, further };
        await approve({ hits: 5 });
        await harness.advance(WINDOW);
        await approve({ hits: 2 });
        const [, , , , pace] = (await used()) ?? [];
        expect(await refund(4)).toBe(2);
        expect(await used()).toEqual([0, 3, 7, 2, pace, 7]);
      });

      test('gives nothing back of an own limit that is no fixed window', async () => {
        const algorithm = { name: 'sliding_window', steps: 5 } as const;
        limits = { ...LIMITS, algorithm, further: [TOKENS] };
        await approve({ hits: 5 });
        expect(await refund(2)).toBe(0);
        expect(await used()).toEqual([5, 3]);
        expect(await check()).toMatchObject({ outcome: 'approved' });
      });
    });
  });
}

/** The behaviour of every limiter for reports of what remains of a limit. */
export function describeReports(name: string, createHarness: HarnessFactory): void {
  describe(`a report of what remains: ${name}`, () => {
    const { harness, key, check, approve, outcome, release, inspect } = useLimits(createHarness);
    const report = (remaining: number, more: Partial<RemainingReport> = {}) =>
      harness.limiter.ask('reportRemaining', { key, remaining, ...more });
    const used = async (): Promise<number | undefined> => (await inspect())?.limits[0].used;
    const windowEnd = async (): Promise<number | undefined> =>
      (await inspect())?.limits[0].millisToWindowEnd;

    test('of less than is left leaves only that until the window ends', async () => {
      await approve();
      expect(await report(2)).toEqual({ remaining: 2 });
      expect(await inspect()).toMatchObject({ limits: [{ used: 8, millisToWindowEnd: WINDOW }] });
      expect(await check()).toMatchObject({ quota: { limits: [{ remaining: 1 }] } });
      await approve();
      expect(await outcome()).toBe('denied');
      await harness.advance(WINDOW);
      expect(await check()).toMatchObject({ quota: { limits: [{ remaining: 9 }] } });
    });

    test.each([4, 5, 10, 1_000_000_000_000])(
      'of %d changes nothing if no more than that is left',
      async (remaining) => {
        await approve({ hits: 6 });
        expect(await report(remaining, { resetMillis: 60_000 })).toEqual({ remaining: 4 });
        expect(await inspect()).toMatchObject({ limits: [{ used: 6, millisToWindowEnd: WINDOW }] });
      },
    );

    test('comes of a denied check that takes the rest, in its own window', async () => {
      limits = { ...LIMITS, further: [TOKENS, { ...TOKENS, name: 'calls', counts: 'requests' }] };
      await approve({ hits: 3 });
      expect(await check({ hits: 8, takesRest: true })).toMatchObject({
        reason: 'limit_reached',
        quota: { limits: [{ remaining: 0, resetMillis: WINDOW }, { remaining: 97 }, {}] },
      });
      expect(await inspect()).toMatchObject({ limits: [{ used: 10 }, { used: 3 }, { used: 1 }] });
      await harness.advance(WINDOW);
      await harness.limiter.ask('pause', { key, millis: 1 });
      expect(await outcome({ hits: 8, takesRest: true })).toBe('denied');
      expect(await used()).toBe(0);
      expect(await outcome({ hits: 11, takesRest: true })).toBe('denied');
      expect(await used()).toBe(10);
    });

    test('that resets before the window ends makes room then', async () => {
      await approve();
      await report(0, { resetMillis: 300 });
      expect(await check()).toMatchObject({
        outcome: 'denied',
        quota: { limits: [{ remaining: 0, resetMillis: 300 }] },
      });
      const waiter = await startWaiting(harness.limiter, key);
      await harness.advance(299);
      expect(waiter.settled).toBeUndefined();
      await harness.advance(1);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved', waited: true });
      expect(await inspect()).toMatchObject({
        limits: [{ used: 2, millisToWindowEnd: WINDOW - 300 }],
      });
    });

    test('that resets later than the window ends it then, and windows follow from there', async () => {
      await approve();
      await harness.advance(400);
      await report(3, { resetMillis: 2000 });
      await harness.advance(1999);
      expect(await inspect()).toMatchObject({ limits: [{ used: 7, millisToWindowEnd: 1 }] });
      await harness.advance(1);
      expect(await inspect()).toMatchObject({ limits: [{ used: 0, millisToWindowEnd: WINDOW }] });
      await harness.advance(WINDOW - 1);
      expect(await windowEnd()).toBe(1);
      await harness.advance(1 + WINDOW / 2);
      expect(await windowEnd()).toBe(WINDOW / 2);
    });

    test('keeps its key for as long as it counts', async () => {
      await report(0, { resetMillis: 60_000 });
      await harness.advance(59_999);
      expect(await outcome()).toBe('denied');
      await harness.advance(1);
      expect(await outcome()).toBe('approved');
    });

    test('holds back what is released, so that a later approval counts besides', async () => {
      const first = await approve({ hits: 3 });
      await report(4);
      expect(await release(first)).toBe(true);
      expect(await used()).toBe(6);
      await approve({ hits: 2 });
      expect(await used()).toBe(8);
    });

    test('that leaves less replaces another, and resets at its time', async () => {
      await report(5, { resetMillis: 3000 });
      await report(2, { resetMillis: 400 });
      expect(await inspect()).toMatchObject({ limits: [{ used: 8, millisToWindowEnd: WINDOW }] });
      await harness.advance(400);
      expect(await used()).toBe(0);
    });

    test('that leaves as much as another resets at its time', async () => {
      await report(5, { resetMillis: 3000 });
      await report(5, { resetMillis: 4000 });
      expect(await windowEnd()).toBe(4000);
      await report(5, { resetMillis: 2000 });
      expect(await windowEnd()).toBe(2000);
    });

    test('that leaves more than another changes nothing', async () => {
      await report(2, { resetMillis: 3000 });
      expect(await report(5, { resetMillis: 4000 })).toEqual({ remaining: 2 });
      expect(await windowEnd()).toBe(3000);
    });

    test('tells who would wait too long for its reset', async () => {
      await report(0, { resetMillis: 3000 });
      expect(await check({ canWait: true, maxWaitMillis: 2999 })).toMatchObject({
        reason: 'turn_too_late',
        turnMillis: 3000,
      });
    });

    test('of a further limit counts in that limit alone', async () => {
      limits = { ...LIMITS, further: [TOKENS] };
      await approve({ hits: 3 });
      expect(await report(10, { limit: 'tokens', resetMillis: 8000 })).toEqual({ remaining: 10 });
      expect(await inspect()).toMatchObject({
        limits: [{ used: 3 }, { used: 90, millisToWindowEnd: 8000 }],
      });
      await harness.advance(7999);
      await approve({ hits: 10 });
      expect(await check()).toMatchObject({
        outcome: 'denied',
        quota: { limits: [{}, { name: 'tokens', remaining: 0, resetMillis: 1 }] },
      });
      await harness.advance(1);
      expect(await outcome()).toBe('approved');
    });

    test('of a limit that the key does not have is rejected, and begins no key', async () => {
      limits = { ...LIMITS, further: [TOKENS, PACE] };
      const rejected = { rejected: 'limit', further: ['tokens', 'pace'] };
      expect(await report(1, { limit: 'other' })).toEqual(rejected);
      expect(await inspect()).toBeUndefined();
      await approve();
      expect(await report(1, { limit: 'other' })).toEqual(rejected);
      expect(await used()).toBe(1);
    });

    test('of a limit that is no fixed window is rejected, and names the algorithm', async () => {
      limits = {
        ...LIMITS,
        algorithm: { name: 'sliding_window', steps: 10 },
        further: [PACE],
      };
      expect(await report(1)).toEqual({ rejected: 'algorithm', algorithm: 'sliding_window' });
      expect(await report(1, { limit: 'pace' })).toEqual({
        rejected: 'algorithm',
        algorithm: 'token_bucket',
      });
      expect(await inspect()).toBeUndefined();
    });
  });
}
