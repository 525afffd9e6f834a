import type { Peek, PeekRequest } from '../../../src/limiter/limiter.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import { group } from '../instance-in-memory.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { ShortCalendar } from '../short-calendar.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 5 };

/** The behaviour of every limiter for peeks. */
export function describePeeks(name: string, createHarness: HarnessFactory): void {
  describe(`a peek: ${name}`, () => {
    let limits = LIMITS;
    const key = useKey(createHarness, () => limits);
    const { harness, approve, wait, inspect } = key;
    beforeEach(() => {
      limits = LIMITS;
    });
    const peek = (terms: Omit<PeekRequest, 'key'> = {}): Promise<Peek> =>
      harness.limiter.ask('peek', { key: key.key, ...terms });
    /** What a check would get, and until its turn. */
    const turn = async (terms?: Omit<PeekRequest, 'key'>): Promise<unknown> => {
      const peeked = await peek(terms);
      return peeked.outcome === 'approved' ? 'approved' : [peeked.reason, peeked.turnMillis];
    };
    test('at a key that does not exist says that a check fits, and makes no key', async () => {
      expect(await peek({ hits: 2 })).toEqual({
        outcome: 'approved',
        quota: { limits: [{ ...ownLimit(WINDOW, 2), remaining: 2, resetMillis: WINDOW }] },
      });
      expect(await inspect()).toBeUndefined();
    });

    test('says what is left, when the window is full until when, and counts nothing', async () => {
      await approve();
      await harness.advance(300);
      for (let i = 0; i < 3; i += 1) {
        expect(await peek()).toMatchObject({
          outcome: 'approved',
          quota: { limits: [{ remaining: 1, resetMillis: 700 }] },
        });
      }
      await approve();
      expect(await peek()).toEqual({
        outcome: 'denied',
        reason: 'limit_reached',
        quota: { limits: [{ ...ownLimit(WINDOW, 2), remaining: 0, resetMillis: 700 }] },
        turnMillis: 700,
      });
      expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], denied: 0 });
    });

    test('of more hits than the maximum says so', async () => {
      expect(await peek({ hits: 3 })).toMatchObject({ outcome: 'denied', reason: 'too_many_hits' });
    });

    test('sees a window that has ended, and does not keep its key', async () => {
      await approve({ hits: 2 });
      await harness.advance(WINDOW);
      expect(await turn()).toBe('approved');
      await harness.advance(3 * WINDOW - 1);
      expect(await turn()).toBe('approved');
      expect(await inspect()).toMatchObject({ limits: [{ used: 0 }] });
      await harness.advance(1);
      expect(await turn({ hits: 2 })).toBe('approved');
      expect(await inspect()).toBeUndefined();
    });

    test('is denied while somebody waits, even if it would fit, with the turn behind all who wait', async () => {
      await approve();
      await wait({ hits: 2 });
      await wait();
      expect(await turn()).toEqual(['limit_reached', WINDOW]);
      await wait();
      expect(await turn()).toEqual(['limit_reached', 2 * WINDOW]);
      expect(await inspect()).toMatchObject({ waiting: 3, denied: 0 });
    });

    test('says that the key is paused, and until when', async () => {
      await harness.limiter.ask('pause', { key: key.key, millis: 2500 });
      expect(await peek()).toEqual({
        outcome: 'denied',
        reason: 'paused',
        quota: { limits: [{ ...ownLimit(WINDOW, 2), remaining: 0, resetMillis: 2500 }] },
        turnMillis: 2500,
      });
      await harness.advance(2500);
      expect(await turn()).toBe('approved');
    });

    test('sees the limits of other rules, as a check would, and brings none of them into force', async () => {
      await approve();
      limits = { ...LIMITS, maxRequests: 1 };
      expect(await turn()).toEqual(['limit_reached', WINDOW]);
      limits = { ...LIMITS, algorithm: { name: 'token_bucket', burst: 1 } };
      expect(await turn()).toBe('approved');
      limits = LIMITS;
      expect(await inspect()).toMatchObject({
        limits: [{ maximum: 2, algorithm: { name: 'fixed_window' } }],
      });
      expect(await turn()).toBe('approved');
    });

    test('of a key with several limits is denied by the one that is full, until it has room', async () => {
      const minute = {
        name: 'minute',
        windowMillis: 60_000,
        maximum: 1,
        counts: 'requests',
        keepsReleased: true,
      } as const;
      limits = { ...LIMITS, further: [minute] };
      await approve();
      expect(await peek()).toMatchObject({
        outcome: 'denied',
        quota: { limits: [{ remaining: 1 }, { name: 'minute', remaining: 0 }] },
        turnMillis: 60_000,
      });
    });

    test.each([
      ['sliding window', { name: 'sliding_window', steps: 10 }, 1100],
      ['token bucket', { name: 'token_bucket', burst: 2 }, 500],
    ] as const)('at a %s says when it has room again', async (_name, algorithm, millis) => {
      limits = { ...LIMITS, algorithm };
      expect(await turn({ hits: 2 })).toBe('approved');
      await approve({ hits: 2 });
      expect(await turn()).toEqual(['limit_reached', millis]);
      await harness.advance(millis - 1);
      expect(await turn()).toEqual(['limit_reached', 1]);
      await harness.advance(1);
      expect(await turn()).toBe('approved');
      expect(await inspect()).toMatchObject({ denied: 0 });
    });

    test('at a window of a calendar sees when each of its days ends', async () => {
      const calendar = new ShortCalendar('Test/Zone', harness.now() - 400, 100);
      const algorithm = { name: 'fixed_window', calendar } as const;
      limits = { ...LIMITS, windowMillis: 86_400_000, algorithm };
      await approve({ hits: 2 });
      expect(await turn()).toEqual(['limit_reached', 2000]);
      await harness.advance(1999);
      expect(await turn()).toEqual(['limit_reached', 1]);
      await harness.advance(1);
      expect(await peek()).toMatchObject({
        outcome: 'approved',
        quota: { limits: [{ windowMillis: 2300, remaining: 2, resetMillis: 2300 }] },
      });
      await approve({ hits: 2 });
      await wait({ hits: 2 });
      await wait();
      await wait();
      expect(await turn()).toEqual(['limit_reached', 2300 + 2500]);
    });

    test('fails for ids that are kept, until a check would drop them', async () => {
      limits = { ...LIMITS, maxRequests: 5, algorithm: { name: 'sliding_window', steps: 2 } };
      await key.restart(limits, { maxIdsPerKey: 2 });
      await approve();
      await approve();
      await expect(peek()).rejects.toMatchObject({ reason: 'key_full' });
      await harness.advance(2999);
      await expect(peek()).rejects.toMatchObject({ reason: 'key_full' });
      await harness.advance(1);
      expect(await turn()).toBe('approved');
    });

    test('fails where a check would, for lack of memory for its id', async () => {
      await key.restart({ ...LIMITS, maxRequests: 5 }, { maxIdsPerKey: 2, maxHoldsPerKey: 1 });
      await approve({ holdMillis: 2500 });
      await expect(peek({ holdMillis: 2500 })).rejects.toMatchObject({ reason: 'key_full' });
      await approve({ hits: 2 });
      await approve();
      await expect(peek()).rejects.toMatchObject({ reason: 'key_full' });
      await harness.advance(WINDOW);
      expect(await turn()).toBe('approved');
      await harness.advance(1500);
      expect(await turn({ holdMillis: 2500 })).toBe('approved');
    });

    describe('of a key with limits of each group', () => {
      const [A, B] = [group('a'), group('b')];
      const perGroup = { maxima: new Map() };
      const share = {
        name: 'tenant',
        windowMillis: 5000,
        counts: 'hits',
        keepsReleased: false,
      } as const;
      const withMaximum = (maximum: number): DeclaredLimits => ({
        ...LIMITS,
        maxRequests: 9,
        further: [{ ...share, maximum, perGroup }],
      });
      beforeEach(async () => {
        limits = withMaximum(1);
        await key.restart(() => limits, { maxGroupsPerKey: 1 });
      });

      test('sees that a hold in another group has lapsed', async () => {
        await approve({ list: A, holdMillis: 7000 });
        await expect(peek({ list: B })).rejects.toMatchObject({ reason: 'key_full' });
        await harness.advance(7000);
        expect(await turn({ list: B })).toBe('approved');
      });

      test('sees that nothing counts in groups once the rules had no such limits', async () => {
        await approve({ list: A });
        limits = { ...LIMITS, maxRequests: 9 };
        await approve({ list: group('c'), hits: 2 });
        limits = withMaximum(1);
        expect(await turn({ list: B })).toBe('approved');
      });

      test('serves groups that were stopped by a limit that is raised now', async () => {
        await approve({ list: A });
        await wait({ list: A });
        limits = withMaximum(3);
        expect(await turn({ list: A })).toBe('approved');
      });
    });
  });
}
