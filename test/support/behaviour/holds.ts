import { RequestIdConflictError } from '../../../src/limiter/errors.js';
import { handleOf } from '../../../src/limiter/holdings.js';
import type {
  Amended,
  Amendment,
  CheckRequest,
  Decision,
  Holding,
  RejectedAmendment,
} from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { requestIdOf } from '../request-id-of.js';
import { startCheck, type WatchedCheck } from '../watched-check.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
/** Lapses in the middle of a window. */
const HOLD = 2500;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 5 };
const NAMED = '01890a5d-ac96-774b-bcce-b302099a8057';
/** All that separates values in calls and in the store. */
const ODD = 'wörker 7:3,;=/%2C@*~#! ⚙';

/** The behaviour of every limiter for approvals that are held. */
export function describeHolds(name: string, createHarness: HarnessFactory): void {
  describe(`holds: ${name}`, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, restart, check, outcome, approve, wait, release, inspect } = subject;
    const hold = (holdMillis = HOLD, more: Partial<CheckRequest> = {}): Promise<string> =>
      approve({ holdMillis, ...more });
    const renew = (
      requestId: string,
      amendment: Amendment = {},
    ): Promise<Amended | RejectedAmendment | undefined> =>
      harness.limiter.ask('amend', { key, requestId, ...amendment });
    const settled = async (checks: readonly WatchedCheck[]): Promise<boolean[]> => {
      await harness.quiet();
      return checks.map((each) => each.settled !== undefined);
    };

    describe('a held approval', () => {
      test('counts in every window until its hold lapses, and in none after', async () => {
        await hold();
        for (let window = 0; window < 2; window += 1) {
          await harness.advance(WINDOW);
          expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
          expect([await outcome(), await outcome()]).toEqual(['approved', 'denied']);
        }
        await harness.advance(HOLD - 2 * WINDOW - 1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], held: 1 });
        await harness.advance(1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 0 });
        expect([await outcome(), await outcome()]).toEqual(['approved', 'denied']);
      });

      test('keeps its key, and the windows of its key', async () => {
        const requestId = await hold(20 * WINDOW);
        await harness.advance(20 * WINDOW - 300);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
        expect(await harness.limiter.ask('examine', { key, mostQueued: 1 })).toMatchObject({
          limits: [{ millisToWindowEnd: 300 }],
        });
        expect(await renew(requestId)).toEqual({ holdMillis: 20 * WINDOW });
        await harness.advance(20 * WINDOW - 1);
        expect(await inspect()).toMatchObject({ held: 1 });
        await harness.advance(1);
        expect(await inspect()).toBeUndefined();
      });

      test('is released once, in any window', async () => {
        const requestId = await hold();
        await harness.advance(2 * WINDOW);
        expect(await release(requestId)).toBe(true);
        expect(await release(requestId)).toBe(false);
        expect(await renew(requestId)).toBeUndefined();
        expect([await outcome(), await outcome()]).toEqual(['approved', 'approved']);
      });
    });

    describe('a renewal', () => {
      test('puts the lapse off, and the time of before ends nothing', async () => {
        const requestId = await hold();
        await harness.advance(HOLD - 1);
        expect(await renew(requestId)).toEqual({ holdMillis: HOLD });
        await harness.advance(HOLD - 1);
        expect(await inspect()).toMatchObject({ held: 1 });
        await harness.advance(1);
        expect(await renew(requestId)).toBeUndefined();
        expect([await outcome(), await outcome()]).toEqual(['approved', 'approved']);
      });

      test('may change the length and the hits, which the next keeps', async () => {
        const requestId = await hold(HOLD, { hits: 2 });
        expect(await renew(requestId, { hits: 1, holdMillis: 4000 })).toEqual({ holdMillis: 4000 });
        await harness.advance(3500);
        expect(await renew(requestId)).toEqual({ holdMillis: 4000 });
        await harness.advance(3500);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
        expect([await outcome(), await outcome()]).toEqual(['approved', 'denied']);
      });

      test('finds no approval that is not held', async () => {
        const requestId = await approve();
        expect(await renew(requestId)).toBeUndefined();
        expect(await renew(requestId, { holdMillis: HOLD })).toBeUndefined();
        expect(await renew(requestId, { holdMillis: HOLD, hits: 2 })).toBeUndefined();
        expect(await renew(requestId, { hits: 1 })).toEqual({});
        expect(await renew('nothing', { holdMillis: HOLD })).toBeUndefined();
        await harness.advance(WINDOW);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }], held: 0 });
      });

      test('to fewer hits serves those who wait', async () => {
        const requestId = await hold(HOLD, { hits: 2 });
        const waiter = await wait();
        expect(await renew(requestId, { hits: 1 })).toEqual({ holdMillis: HOLD });
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      });
    });

    describe('waiters of a key with holds', () => {
      test('are served at a lapse in their order, one for each', async () => {
        await hold(HOLD);
        await hold(HOLD + 200);
        const waiters = [await wait({ holdMillis: HOLD }), await wait(), await wait()];
        await harness.advance(HOLD - 1);
        expect(await settled(waiters)).toEqual([false, false, false]);
        await harness.advance(1);
        expect(await waiters[0]!.decision).toMatchObject({ outcome: 'approved' });
        expect(await settled(waiters)).toEqual([true, false, false]);
        await harness.advance(200);
        expect(await waiters[1]!.decision).toMatchObject({ outcome: 'approved' });
        expect(await settled(waiters)).toEqual([true, true, false]);
        await harness.advance(300);
        expect(await waiters[2]!.decision).toMatchObject({ outcome: 'approved' });
      });

      test('are not served at the end of a window if all is held', async () => {
        const requestId = await hold(10_000, { hits: 2 });
        const waiter = await wait();
        await harness.advance(5 * WINDOW);
        expect(await settled([waiter])).toEqual([false]);
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], held: 2, waiting: 1 });
        expect(await release(requestId)).toBe(true);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      });

      test('hold their approvals from the moment on in which they get them', async () => {
        const requestId = await hold(10_000, { hits: 2 });
        const waiter = await wait({ holdMillis: HOLD, hits: 2 });
        await harness.advance(WINDOW);
        await release(requestId);
        const own = requestIdOf(await waiter.decision);
        await harness.advance(HOLD - 1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], held: 2 });
        expect(await renew(own)).toEqual({ holdMillis: HOLD });
        await harness.advance(HOLD);
        expect(await outcome({ hits: 2 })).toBe('approved');
      });

      test('are not denied at once for their longest wait while something is held', async () => {
        const requestId = await hold(10_000, { hits: 2 });
        const [late, inTime] = [
          await wait({ maxWaitMillis: WINDOW - 1 }),
          await wait({ maxWaitMillis: WINDOW }),
        ];
        await harness.advance(WINDOW - 1);
        expect(await late.decision).toMatchObject({ outcome: 'denied' });
        await release(requestId);
        expect(await inTime.decision).toMatchObject({ outcome: 'approved' });
      });
    });

    describe('the quota of a key with holds', () => {
      const resetOf = (decision: Decision): number | undefined =>
        'quota' in decision ? decision.quota?.limits[0].resetMillis : undefined;

      test('waits for a lapse before the window ends, as long as there is one', async () => {
        await restart({ ...LIMITS, windowMillis: 10_000 }, {});
        expect(resetOf(await check())).toBe(10_000);
        const held = await check({ holdMillis: HOLD });
        expect([resetOf(held), resetOf(await check())]).toEqual([HOLD, HOLD]);
        await release(requestIdOf(held));
        expect(resetOf(await check())).toBe(10_000);
      });
    });

    describe('the most holds of a key', () => {
      beforeEach(() => restart({ ...LIMITS, maxRequests: 5 }, { maxHoldsPerKey: 2 }));

      test('fail a check that does not wait, and leave others alone', async () => {
        const requestId = await hold();
        await hold();
        await expect(hold()).rejects.toMatchObject({ reason: 'key_full' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], denied: 0 });
        expect(await outcome()).toBe('approved');
        await release(requestId);
        expect(await outcome({ holdMillis: HOLD })).toBe('approved');
      });

      test('let others wait for a lapse', async () => {
        await hold(HOLD);
        await hold(10_000);
        const waiter = await wait({ holdMillis: HOLD });
        // Nobody overtakes.
        expect(await outcome()).toBe('denied');
        await harness.advance(2 * WINDOW);
        expect(await settled([waiter])).toEqual([false]);
        await harness.advance(HOLD - 2 * WINDOW);
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], held: 2, waiting: 0 });
      });
    });

    test('the most holds of a key let others wait for a lapse where no limit counts what is held', async () => {
      const algorithm = { name: 'token_bucket', burst: 9 } as const;
      const bucket = { windowMillis: 100 * HOLD, maxRequests: 9, maxRequestsInQueue: 5, algorithm };
      await restart(bucket, { maxHoldsPerKey: 1 });
      await hold();
      const waiter = await wait({ holdMillis: HOLD });
      await harness.advance(HOLD - 1);
      expect(await settled([waiter])).toEqual([false]);
      await harness.advance(1);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
    });

    test('an approval that is held needs none of the ids that may be stored', async () => {
      await restart({ ...LIMITS, maxRequests: 4 }, { maxIdsPerKey: 2 });
      const requestId = await hold();
      await hold();
      expect([await outcome(), await outcome()]).toEqual(['approved', 'approved']);
      const waiters = [
        await wait({ holdMillis: HOLD }),
        await wait(),
        await wait({ holdMillis: HOLD }),
      ];
      await release(requestId);
      expect(await waiters[0]!.decision).toMatchObject({ outcome: 'approved' });
      // The set of ids is full, and the head of the queue is not overtaken.
      await harness.advance(WINDOW - 1);
      expect(await settled(waiters)).toEqual([true, false, false]);
      await harness.advance(1);
      for (const { decision } of waiters)
        expect(await decision).toMatchObject({ outcome: 'approved' });
    });

    test('a waiter without a place among the ids is not overtaken by the first check that asks for a hold', async () => {
      await restart({ ...LIMITS, maxRequests: 9 }, { maxIdsPerKey: 2 });
      // With several hits, the set of ids is full before the maximum is reached.
      await approve({ hits: 2 });
      const requestId = await approve({ hits: 2 });
      const waiters = [await wait(), await wait({ holdMillis: HOLD })];
      for (let check = 0; check < 3; check += 1) {
        expect(await outcome({ holdMillis: HOLD })).toBe('denied');
      }
      expect(await settled(waiters)).toEqual([false, false]);
      expect(await inspect()).toMatchObject({ limits: [{ used: 4 }], held: 0, waiting: 2 });
      await release(requestId);
      for (const { decision } of waiters)
        expect(await decision).toMatchObject({ outcome: 'approved' });
      expect(await outcome({ holdMillis: HOLD })).toBe('approved');
    });
  });
}

/** The behaviour of every limiter that shows who holds approvals. */
export function describeHolders(name: string, createHarness: HarnessFactory): void {
  describe(`holders: ${name}`, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, check, approve, outcome, wait, release } = subject;
    const holdings = (): Promise<readonly Holding[]> => harness.limiter.ask('holdings', { key });
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
      await harness.limiter.ask('amend', { key, requestId, hits: 2 });
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
      const end = (): Promise<boolean> =>
        harness.limiter.ask('endHold', { key, handle: handleOf(key, stuck) });
      expect(await end()).toBe(true);
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      expect(await holdings()).toMatchObject([{ holder: 'next:1' }]);
      expect(await harness.limiter.ask('amend', { key, requestId: stuck })).toBeUndefined();
      expect(await release(stuck)).toBe(false);
      expect(await end()).toBe(false);
    });

    test('can not be ended by another handle, or if they hold nothing', async () => {
      const plain = await approve();
      await approve({ holdMillis: HOLD, holder: 'host:1' });
      const { limiter } = harness;
      expect(await limiter.ask('endHold', { key, handle: handleOf(key, plain) })).toBe(false);
      expect(await limiter.ask('endHold', { key, handle: 'unknown' })).toBe(false);
      expect(await limiter.ask('endHold', { key: `${key} other`, handle: 'unknown' })).toBe(false);
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
        await harness.limiter.ask('endHold', { key, handle: handleOf(key, NAMED) });
        expect(await conflictOf('host:1')).toBe('used');
        expect(await conflictOf('host:2')).toBe('used');
      });
    });
  });
}
