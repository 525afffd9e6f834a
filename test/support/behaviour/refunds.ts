import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits, FurtherLimit } from '../limits.js';
import { startWaiting } from '../watched-check.js';
import { useKey } from './use-key.js';

export const WINDOW = 1000;
export const LIMITS: DeclaredLimits = {
  windowMillis: WINDOW,
  maxRequests: 10,
  maxRequestsInQueue: 5,
};

/** A limit of hits that outlasts windows of the key. */
export const TOKENS: FurtherLimit = {
  name: 'tokens',
  windowMillis: 5000,
  maximum: 100,
  counts: 'hits',
  keepsReleased: false,
};

const HOLD = 60_000;

/** The behaviour of every limiter for hits that are given back without their approvals. */
export function describeRefunds(name: string, createHarness: HarnessFactory): void {
  describe(`a refund of hits: ${name}`, () => {
    let limits: DeclaredLimits;
    beforeEach(() => {
      limits = LIMITS;
    });
    const { harness, key, check, approve, outcome, release, inspect } = useKey(
      createHarness,
      () => limits,
    );
    const refund = (hits: number) => harness.limiter.refund({ key, hits });
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
      await harness.limiter.reportRemaining(key, { remaining: 4 });
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
