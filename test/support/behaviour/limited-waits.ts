import type { Decision } from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { until } from '../until.js';
import { startCheck, type WatchedCheck } from '../watched-check.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 5 };

/** The behaviour of every limiter for waits with a limit. */
export function describeLimitedWaits(name: string, createHarness: HarnessFactory): void {
  describe(`waits with a limit: ${name}`, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, check, approve, release, inspect } = subject;
    const fill = async (): Promise<void> => {
      await check();
      await check();
    };
    const ask = (maxWaitMillis: number): Promise<Decision> =>
      check({ canWait: true, maxWaitMillis });
    const wait = (maxWaitMillis?: number): Promise<WatchedCheck> => subject.wait({ maxWaitMillis });
    const denied = (reason: string): unknown =>
      expect.objectContaining({ outcome: 'denied', reason });

    test('are approved while there is room, however short they are', async () => {
      expect(await ask(0)).toMatchObject({ outcome: 'approved' });
    });

    test('are denied at once if the window ends later, and do not count as denials', async () => {
      await fill();
      const decision = await ask(WINDOW - 1);
      expect(decision).toEqual(denied('turn_too_late'));
      expect(decision).toMatchObject({ turnMillis: WINDOW });
      expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], denied: 0, waiting: 0 });
    });

    test('may end at the exact moment of their turn', async () => {
      await fill();
      const waiting = await wait(WINDOW);
      await harness.advance(WINDOW);
      expect(await waiting.decision).toMatchObject({ outcome: 'approved' });
      expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], waiting: 0 });
    });

    test('take the windows of earlier waiters into account', async () => {
      await fill();
      await wait();
      const last = await wait(WINDOW);
      const decision = await ask(2 * WINDOW - 1);
      expect(decision).toEqual(denied('turn_too_late'));
      expect(decision).toMatchObject({ turnMillis: 2 * WINDOW });
      const next = await wait(2 * WINDOW);

      await harness.advance(WINDOW);
      expect(await last.decision).toMatchObject({ outcome: 'approved' });
      expect(next.settled).toBeUndefined();
      await harness.advance(WINDOW);
      expect(await next.decision).toMatchObject({ outcome: 'approved' });
    });

    test('end with a denial if the turn does not come, and delay no other waiter', async () => {
      await fill();
      const [first, second, third] = [await wait(), await wait(WINDOW), await wait()];
      await check({ maxRequests: 1 });

      await harness.advance(WINDOW);
      expect(await first.decision).toMatchObject({ outcome: 'approved' });
      expect(await second.decision).toEqual(denied('wait_expired'));
      await until(async () => (await inspect())?.waiting === 1);
      expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], denied: 0 });

      await harness.advance(WINDOW);
      expect(await third.decision).toMatchObject({ outcome: 'approved' });
    });

    test('are denied for an estimate only where nothing was released in this window or the last', async () => {
      await check();
      const given = await approve();
      expect(await ask(WINDOW / 2)).toEqual(denied('turn_too_late'));
      await release(given);
      const next = await approve();

      const served = await wait(WINDOW / 2);
      await release(next);
      expect(await served.decision).toMatchObject({ outcome: 'approved' });
      const unserved = await wait(WINDOW / 2);
      expect(await ask(0)).toEqual(denied('turn_too_late'));
      await harness.advance(WINDOW / 2);
      expect(await unserved.decision).toEqual(denied('wait_expired'));

      await harness.advance(WINDOW / 2);
      await fill();
      const inNext = await wait(WINDOW / 2);
      await harness.advance(WINDOW / 2);
      expect(await inNext.decision).toEqual(denied('wait_expired'));
      await harness.advance(WINDOW / 2);
      await fill();
      expect(await ask(WINDOW / 2)).toEqual(denied('turn_too_late'));
    });

    test('report a full queue rather than a late turn, and a late turn rather than a lack of places', async () => {
      await fill();
      const late = { key, canWait: true, maxWaitMillis: 1 };
      expect(await check({ ...late, maxRequestsInQueue: 0 })).toMatchObject({
        reason: 'queue_full',
      });
      const last = startCheck(harness.limiter, {
        ...late,
        noPlace: true,
        maxRequestsInQueue: 5,
      });
      expect(await last.decision).toMatchObject({ reason: 'turn_too_late' });
    });
  });
}
