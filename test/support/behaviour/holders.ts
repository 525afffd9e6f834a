import { RequestIdConflictError } from '../../../src/limiter/errors.js';
import { handleOf } from '../../../src/limiter/holdings.js';
import type { Holding } from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { requestIdOf } from '../request-id-of.js';
import { startCheck } from '../watched-check.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
const HOLD = 2500;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 5 };
const NAMED = '01890a5d-ac96-774b-bcce-b302099a8057';
/** All that separates values in calls and in the store. */
const ODD = 'wörker 7:3,;=/%2C@*~#! ⚙';

/** The behaviour of every limiter that shows who holds approvals. */
export function describeHolders(name: string, createHarness: HarnessFactory): void {
  describe(`holders: ${name}`, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, check, approve, outcome, wait, release } = subject;
    const holdings = (): Promise<readonly Holding[]> => harness.limiter.holdings(key);
    const shown = (requestId: string, holding: Partial<Holding> = {}): unknown => ({
      handle: handleOf(key, requestId),
      holder: 'host:1',
      heldMillis: 0,
      lapseMillis: HOLD,
      hits: 1,
      ...holding,
    });

    test('are shown with the time of their hold, until that ends', async () => {
      const requestId = await approve({ holdMillis: HOLD, holder: 'host:1' });
      await harness.advance(1200);
      expect(await holdings()).toEqual([
        shown(requestId, { heldMillis: 1200, lapseMillis: HOLD - 1200 }),
      ]);
      await harness.limiter.amend(key, requestId, { hits: 2 });
      await harness.advance(800);
      expect(await holdings()).toEqual([
        shown(requestId, { heldMillis: 2000, lapseMillis: HOLD - 800, hits: 2 }),
      ]);
      await harness.advance(HOLD - 800);
      expect(await holdings()).toEqual([]);
    });

    test('are shown by the order of their lapses, also those that no check has named', async () => {
      const long = await approve({ holdMillis: 2 * HOLD, holder: ODD });
      await harness.advance(1);
      const short = await approve({ holdMillis: HOLD });
      expect(await holdings()).toEqual([
        shown(short, { holder: undefined, heldMillis: undefined }),
        shown(long, { holder: ODD, heldMillis: 1, lapseMillis: 2 * HOLD - 1 }),
      ]);
      await release(short);
      expect(await holdings()).toMatchObject([{ holder: ODD }]);
      await release(long);
      expect(await holdings()).toEqual([]);
    });

    test('are none of a key that does not exist, or that holds nothing', async () => {
      expect(await holdings()).toEqual([]);
      await approve();
      expect(await holdings()).toEqual([]);
    });

    test('that have waited hold from their turn on', async () => {
      await approve({ hits: 2 });
      const waiter = await wait({ holdMillis: HOLD, holder: ODD, hits: 2 });
      expect(await holdings()).toEqual([]);
      await harness.advance(WINDOW);
      const requestId = requestIdOf(await waiter.decision);
      await harness.advance(10);
      expect(await holdings()).toEqual([
        shown(requestId, { holder: ODD, heldMillis: 10, lapseMillis: HOLD - 10, hits: 2 }),
      ]);
    });

    test('that leave the queue are not those of the next in it', async () => {
      await approve({ hits: 2 });
      const first = await wait({ holdMillis: HOLD, holder: 'gone:1' });
      const second = await wait({ holdMillis: HOLD });
      first.disconnect();
      await harness.quiet();
      await harness.advance(WINDOW);
      const requestId = requestIdOf(await second.decision);
      expect(await holdings()).toEqual([
        shown(requestId, { holder: undefined, heldMillis: undefined }),
      ]);
    });

    test('can be ended once by their handle, which gives the head of the queue its turn', async () => {
      const stuck = await approve({ holdMillis: HOLD, holder: 'stuck:1', hits: 2 });
      const waiter = await wait({ holdMillis: HOLD, holder: 'next:1' });
      const end = (): Promise<boolean> => harness.limiter.endHold(key, handleOf(key, stuck));
      expect(await end()).toBe(true);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      expect(await holdings()).toMatchObject([{ holder: 'next:1' }]);
      expect(await harness.limiter.amend(key, stuck, {})).toBeUndefined();
      expect(await release(stuck)).toBe(false);
      expect(await end()).toBe(false);
    });

    test('can not be ended by another handle, or if they hold nothing', async () => {
      const plain = await approve();
      await approve({ holdMillis: HOLD, holder: 'host:1' });
      const { limiter } = harness;
      expect(await limiter.endHold(key, handleOf(key, plain))).toBe(false);
      expect(await limiter.endHold(key, 'unknown')).toBe(false);
      expect(await limiter.endHold(`${key} other`, 'unknown')).toBe(false);
      expect([await outcome(), (await holdings()).length]).toEqual(['denied', 1]);
    });

    describe('of a request id', () => {
      const named = { requestId: NAMED, holdMillis: HOLD, holder: 'host:1' };
      const conflictOf = async (holder: string | undefined, canWait = false): Promise<unknown> => {
        const conflict = await check({ ...named, holder, canWait }).catch(
          (error: unknown) => error,
        );
        return conflict instanceof RequestIdConflictError ? conflict.conflict : conflict;
      };

      test('are the same in all checks while the approval is held', async () => {
        await approve(named);
        for (const other of ['host:2', undefined]) {
          expect(await conflictOf(other)).toBe('other_holder');
        }
        await harness.advance(5);
        await approve(named);
        expect(await holdings()).toEqual([shown(NAMED, { heldMillis: 5, lapseMillis: HOLD - 5 })]);
      });

      test('are the same in all checks while the request waits', async () => {
        await approve({ hits: 2 });
        const waiter = await wait(named);
        for (const other of ['host:2', undefined]) {
          expect(await conflictOf(other, true)).toBe('other_holder');
        }
        const later = startCheck(harness.limiter, { key, canWait: true, ...named });
        await harness.quiet();
        await expect(waiter.decision).rejects.toMatchObject({ conflict: 'taken_over' });
        await harness.advance(WINDOW);
        expect(await later.decision).toMatchObject({ outcome: 'approved', requestId: NAMED });
        expect(await holdings()).toEqual([shown(NAMED)]);
      });

      test('do not matter once the hold has been ended', async () => {
        await approve(named);
        await harness.limiter.endHold(key, handleOf(key, NAMED));
        expect(await conflictOf('host:1')).toBe('used');
        expect(await conflictOf('host:2')).toBe('used');
      });
    });
  });
}
