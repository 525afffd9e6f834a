import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { ShortCalendar } from '../short-calendar.js';
import { startWaiting, type WatchedCheck } from '../watched-check.js';
import { useKey } from './use-key.js';

/** The days of the calendar have 2400, 2300 and 2500 ms, and begin at 0, 2400, 4700 and 7200. */
const PART = 100;
/** Waiters are served within this time after the end of a day. */
const SPREAD = 1000;
const ZONE = 'Test/Zone';

/** The behaviour of every limiter for windows of a calendar. */
export function describeCalendars(name: string, createHarness: HarnessFactory): void {
  describe(`windows of a calendar: ${name}`, () => {
    let start: number;
    let now: number;
    let limits: DeclaredLimits;
    const key = useKey(createHarness, () => limits);
    const { harness, check, approve, wait, release, outcome, inspect } = key;
    beforeEach(() => {
      start = harness.now();
      now = 0;
      limits = byCalendar(2);
    });

    function calendar(zone = ZONE, ahead = 0): Algorithm {
      const shortCalendar = new ShortCalendar(zone, start - ahead, PART);
      return { name: 'fixed_window', calendar: shortCalendar };
    }

    /** Limits of a rule. These have the length of the longest day. */
    function byCalendar(maxRequests: number, algorithm = calendar()): DeclaredLimits {
      return { windowMillis: 86_400_000, maxRequests, maxRequestsInQueue: 20, algorithm };
    }

    const at = async (millis: number): Promise<void> => {
      await harness.advance(millis - now);
      now = millis;
    };
    const change = async (changed: DeclaredLimits): Promise<void> => {
      limits = changed;
      harness.limiter.limitsChanged();
      await harness.quiet();
    };
    const own = async () => (await inspect())?.limits[0];
    const isApproved = ({ settled }: WatchedCheck): boolean => settled?.outcome === 'approved';
    const expectApproved = async (...waiters: WatchedCheck[]): Promise<void> => {
      const decisions = await Promise.all(waiters.map(({ decision }) => decision));
      expect(decisions.map(({ outcome: told }) => told)).toEqual(waiters.map(() => 'approved'));
    };

    test('end when the day ends, whenever the first check came', async () => {
      await at(1000);
      expect(await check()).toMatchObject({
        outcome: 'approved',
        quota: {
          limits: [
            {
              windowMillis: 2400,
              algorithm: { name: 'fixed_window', calendar: { unit: 'day', timeZone: ZONE } },
              remaining: 1,
              resetMillis: 1400,
            },
          ],
        },
      });
      await approve();
      await at(2399);
      expect(await outcome()).toBe('denied');
      await at(2400);
      await approve({ hits: 2 });
      expect(await own()).toMatchObject({ windowMillis: 2300, millisToWindowEnd: 2300, used: 2 });
      await at(4699);
      expect(await outcome()).toBe('denied');
      await at(4700);
      await approve({ hits: 2 });
      expect(await own()).toMatchObject({ windowMillis: 2500, millisToWindowEnd: 2500, used: 2 });
      await at(7199);
      expect(await outcome()).toBe('denied');
      await at(7200);
      await approve();
    });

    test('are shown as of now, also after days without a check', async () => {
      await approve({ hits: 2 });
      await at(3000);
      expect(await own()).toMatchObject({ used: 0, windowMillis: 2300, millisToWindowEnd: 1700 });
      await at(7300);
      expect(await check()).toMatchObject({
        quota: { limits: [{ windowMillis: 2400, remaining: 1, resetMillis: 2300 }] },
      });
    });

    test('count held approvals while they are held, and give back what is released', async () => {
      const released = await approve();
      await approve({ holdMillis: 4000 });
      expect(await release(released)).toBe(true);
      await approve();
      await at(2400);
      expect(await release(released)).toBe(false);
      await approve();
      expect(await outcome()).toBe('denied');
      expect(await own()).toMatchObject({ used: 2 });
      await at(4000);
      await approve();
    });

    test('serve the queue soon after they end, in order', async () => {
      await approve({ hits: 2 });
      const waiters = [await wait(), await wait(), await wait()];
      await at(2399);
      expect(waiters.map(isApproved)).toEqual([false, false, false]);
      await at(2400 + SPREAD + 200);
      await expectApproved(waiters[0]!, waiters[1]!);
      expect(isApproved(waiters[2]!)).toBe(false);
      await at(4700 + SPREAD + 200);
      await expectApproved(...waiters);
    });

    test('serve the queue before a check that comes when they have ended', async () => {
      await approve({ hits: 2 });
      const waiters = [await wait(), await wait()];
      await at(2400);
      expect(await outcome()).toBe('denied');
      await harness.quiet();
      await expectApproved(...waiters);
    });

    test('let a check wait that is in time for the end of its day, or of the next', async () => {
      limits = byCalendar(1);
      await at(100);
      await approve();
      expect(await check({ canWait: true, maxWaitMillis: 2299 })).toMatchObject({
        reason: 'turn_too_late',
        turnMillis: 2300,
      });
      await wait();
      expect(await check({ canWait: true, maxWaitMillis: 4599 })).toMatchObject({
        reason: 'turn_too_late',
        turnMillis: 4600,
      });
      const last = await startWaiting(harness.limiter, key.key, { maxWaitMillis: 4600 });
      await at(4700);
      await harness.quiet();
      expect(await last.decision).toMatchObject({ outcome: 'approved' });
    });

    test('take reports, after which the next one begins where the calendar says', async () => {
      const { limiter } = harness;
      expect(await limiter.ask('reportRemaining', { key: key.key, remaining: 0 })).toEqual({
        remaining: 0,
      });
      expect(await check()).toMatchObject({ quota: { limits: [{ resetMillis: 2400 }] } });
      const longer = { remaining: 0, resetMillis: 2900 };
      expect(await limiter.ask('reportRemaining', { key: key.key, ...longer })).toEqual({
        remaining: 0,
      });
      await at(2899);
      expect(await outcome()).toBe('denied');
      await at(2900);
      await approve({ hits: 2 });
      await at(4699);
      expect(await outcome()).toBe('denied');
      await at(4700);
      await approve();
    });

    test('are further limits of a key', async () => {
      limits = {
        windowMillis: 1000,
        maxRequests: 10,
        maxRequestsInQueue: 20,
        further: [
          {
            name: 'daily',
            windowMillis: 86_400_000,
            maximum: 2,
            algorithm: calendar(),
            counts: 'requests',
            keepsReleased: true,
          },
        ],
      };
      await at(1000);
      expect(await release(await approve())).toBe(true);
      await approve();
      expect(await check()).toMatchObject({
        outcome: 'denied',
        quota: {
          limits: [{ remaining: 9 }, { windowMillis: 2400, remaining: 0, resetMillis: 1400 }],
        },
      });
      expect((await inspect())?.limits[1]).toMatchObject({
        algorithm: { calendar: { unit: 'day', timeZone: ZONE } },
        windowMillis: 2400,
        millisToWindowEnd: 1400,
      });
      const waiter = await wait();
      await at(2399);
      expect(isApproved(waiter)).toBe(false);
      await at(2400 + SPREAD + 200);
      await expectApproved(waiter);
      await approve();
      expect(await outcome()).toBe('denied');
    });

    test('begin at the end of a fixed window, and fixed windows at the end of one', async () => {
      limits = { windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 20 };
      await at(500);
      await approve({ hits: 2 });
      await change(byCalendar(3));
      expect(await outcome()).toBe('denied');
      await at(1500);
      await approve({ hits: 2 });
      expect(await own()).toMatchObject({ windowMillis: 2400, used: 2, millisToWindowEnd: 900 });
      await change({ windowMillis: 1000, maxRequests: 4, maxRequestsInQueue: 20 });
      await approve();
      expect(await outcome()).toBe('denied');
      await at(2450);
      await approve({ hits: 4 });
      expect(await own()).toMatchObject({ algorithm: DEFAULT_ALGORITHM, windowMillis: 1000 });
      await at(3449);
      expect(await outcome()).toBe('denied');
      await at(3450);
      await approve();
    });

    test('change to those of another calendar when they end', async () => {
      await approve();
      await change(byCalendar(2, calendar('Test/Other', 500)));
      await at(2399);
      await approve();
      expect(await outcome()).toBe('denied');
      await at(2400);
      await approve({ hits: 2 });
      expect(await own()).toMatchObject({
        algorithm: { calendar: { timeZone: 'Test/Other' } },
        used: 2,
        windowMillis: 2300,
        millisToWindowEnd: 1800,
      });
    });

    test('carry over at once what counts of a sliding window', async () => {
      const algorithm: Algorithm = { name: 'sliding_window', steps: 10 };
      limits = { windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 20, algorithm };
      await at(300);
      await approve();
      await change(byCalendar(2));
      await approve();
      expect(await outcome()).toBe('denied');
      expect(await own()).toMatchObject({ used: 2, windowMillis: 2400, millisToWindowEnd: 2100 });
      await change({ windowMillis: 1000, maxRequests: 3, maxRequestsInQueue: 20, algorithm });
      expect(await outcome()).toBe('denied');
      await at(2400);
      await approve({ hits: 3 });
      expect(await own()).toMatchObject({ algorithm, used: 3 });
    });

    test('get another maximum at once', async () => {
      await approve({ hits: 2 });
      const waiter = await wait();
      await change(byCalendar(3));
      await expectApproved(waiter);
      await change(byCalendar(1));
      await at(2400);
      await approve();
      expect(await outcome()).toBe('denied');
    });
  });
}
