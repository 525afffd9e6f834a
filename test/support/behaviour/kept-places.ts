import { randomUUID } from 'node:crypto';

import type { CheckRequest } from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import { type DeclaredLimits, type FurtherLimit, furtherLimits } from '../limits.js';
import { until } from '../until.js';
import { startCheck, type WaitTerms, type WatchedCheck } from '../watched-check.js';
import { expectConflict } from './request-ids.js';
import { useKey } from './use-key.js';

const WINDOW = 4000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 5 };
const KEEP = 10_000;
/** Longer than any test goes on. */
const BLOCKED = 25 * WINDOW;

/** The behaviour of every limiter for places that outlive their connections. */
export function describeKeptPlaces(name: string, createHarness: HarnessFactory): void {
  describe(`kept places: ${name}`, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, restart, check, approve, wait, release, inspect } = subject;
    let id: string;
    beforeEach(() => {
      id = randomUUID();
    });
    const used = async (): Promise<number | undefined> => (await inspect())?.limits[0].used;
    const held = async (): Promise<number | undefined> => (await inspect())?.held;
    const waiting = async (): Promise<number | undefined> => (await inspect())?.waiting;
    const untilWaiting = (count: number) => until(async () => (await waiting()) === count);
    const sameApproval = (): unknown =>
      expect.objectContaining({ outcome: 'approved', requestId: id });
    const left = (): unknown => ({ outcome: 'waiting', requestId: id, place: undefined });

    /** The window is full until it ends. */
    const fill = (): Promise<unknown> => approve({ hits: 2 });
    /** Nobody is approved until the returned approval is released. */
    const block = (): Promise<string> => approve({ hits: 2, holdMillis: BLOCKED });
    const keep = (terms: WaitTerms = {}): Promise<WatchedCheck> =>
      wait({ requestId: id, keepMillis: KEEP, ...terms });
    /** Sends a check of the request that has a place. */
    const comeBack = (terms: Partial<CheckRequest> = {}): WatchedCheck =>
      startCheck(harness.limiter, {
        key,
        canWait: true,
        requestId: id,
        keepMillis: KEEP,
        ...terms,
      });
    const leave = async (kept: WatchedCheck): Promise<void> => {
      kept.disconnect();
      expect(await kept.decision).toEqual(left());
      await harness.quiet();
    };
    /** A request whose caller has left gets its turn. */
    const grant = async (terms: WaitTerms = {}): Promise<void> => {
      await fill();
      await leave(await keep(terms));
      await harness.advance(WINDOW);
    };
    const expectUnknown = async (): Promise<void> => {
      const before = (await used()) ?? 0;
      expect(await check({ requestId: id })).toEqual(sameApproval());
      expect(await used()).toBe(before + 1);
    };

    describe('a place whose caller has disconnected', () => {
      test('stays for keepMillis, and is withdrawn then', async () => {
        const blocking = await block();
        const kept = await keep();
        const last = await wait();
        await harness.advance(1000);
        await leave(kept);
        await harness.advance(KEEP - 1);
        expect(await waiting()).toBe(2);
        await harness.advance(1);
        await untilWaiting(1);
        await release(blocking);
        expect(await last.decision).toMatchObject({ outcome: 'approved' });
        expect(await used()).toBe(1);
        await expectUnknown();
      });

      test('is one that waits here, until it ends', async () => {
        await block();
        await leave(await keep());
        expect([harness.limiter.waiting(), harness.limiter.waiting(key)]).toEqual([1, 1]);
        await harness.advance(KEEP);
        await until(() => harness.limiter.waiting() === 0);
        expect(harness.limiter.waiting(key)).toBe(0);
      });

      test('is taken over by a later check, and its turn comes when it would have', async () => {
        await fill();
        const first = await wait();
        const kept = await keep();
        const last = await wait();
        await leave(kept);
        await harness.advance(WINDOW / 2);
        const later = comeBack();
        await harness.quiet();
        expect(await waiting()).toBe(3);
        await check({ maxRequests: 1 });

        await harness.advance(WINDOW / 2);
        expect(await first.decision).toMatchObject({ outcome: 'approved' });
        await harness.advance(WINDOW);
        expect(await later.decision).toEqual(sameApproval());
        expect(await later.decision).toMatchObject({ waited: true });
        await harness.quiet();
        expect(last.settled).toBeUndefined();
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 0, waiting: 1 });
        await harness.advance(WINDOW);
        expect(await last.decision).toMatchObject({ outcome: 'approved' });
      });

      test('is kept for as long as the newest check says', async () => {
        await block();
        await leave(await keep());
        const later = comeBack({ keepMillis: 2 * KEEP });
        await harness.quiet();
        await leave(later);
        await harness.advance(2 * KEEP - 1);
        expect(await waiting()).toBe(1);
        await harness.advance(1);
        await untilWaiting(0);
      });

      test('ends with a later check that does not keep it', async () => {
        await block();
        await leave(await keep());
        const later = comeBack({ keepMillis: undefined });
        await harness.quiet();
        later.disconnect();
        expect(await later.decision).toEqual({ outcome: 'withdrawn' });
        await untilWaiting(0);
      });

      test('is taken over from a check that is still connected', async () => {
        await block();
        const kept = await keep();
        const later = comeBack();
        await expectConflict(kept.decision, 'taken_over');
        await harness.advance(KEEP + 1);
        expect(later.settled).toBeUndefined();
        expect(await waiting()).toBe(1);
      });

      test('is withdrawn by a release', async () => {
        const blocking = await block();
        await leave(await keep());
        const last = await wait();
        expect(await release(id)).toBe(true);
        expect(await release(id)).toBe(false);
        await untilWaiting(1);
        await release(blocking);
        expect(await last.decision).toMatchObject({ outcome: 'approved' });
        await expectUnknown();
      });
    });

    test('places keep their order, whoever comes back', async () => {
      await restart({ ...LIMITS, maxRequests: 1 }, {});
      await approve();
      const ids = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
      const checks = new Map<string, WatchedCheck>();
      for (const requestId of ids) checks.set(requestId, await keep({ requestId }));
      for (const requestId of [ids[2]!, ids[0]!]) {
        checks.get(requestId)!.disconnect();
        await harness.advance(100);
        checks.set(requestId, comeBack({ requestId }));
        await harness.quiet();
      }
      for (const [i, requestId] of ids.entries()) {
        await harness.advance(WINDOW);
        expect(await checks.get(requestId)!.decision).toMatchObject({ outcome: 'approved' });
        await harness.quiet();
        expect(ids.filter((each) => checks.get(each)!.settled)).toHaveLength(i + 1);
      }
    });

    describe('a check that waits for its answer only for a time', () => {
      test('is told its place then, and the place stays for keepMillis', async () => {
        await fill();
        const first = await wait();
        const kept = await keep({ answerMillis: 1000 });
        await harness.advance(999);
        expect(kept.settled).toBeUndefined();
        await harness.advance(1);
        const place = { position: 2, waitMillis: WINDOW - 1000 };
        expect(await kept.decision).toEqual({ outcome: 'waiting', requestId: id, place });
        expect(first.settled).toBeUndefined();
        expect(await waiting()).toBe(2);
        await harness.limiter.ask('pause', { key, millis: BLOCKED });
        await harness.advance(KEEP - 1);
        expect(await waiting()).toBe(2);
        await harness.advance(1);
        await untilWaiting(1);
      });

      test('of 0 ms is told its place at once', async () => {
        await fill();
        for (let others = 0; others < 2; others += 1) await wait();
        const first = await comeBack({ answerMillis: 0 }).decision;
        expect(first).toMatchObject({ outcome: 'waiting', place: { position: 3 } });
        await check({ maxRequests: 1 });
        // The two before it have a window each.
        const place = { position: 3, waitMillis: 3 * WINDOW };
        const later = await comeBack({ answerMillis: 0 }).decision;
        expect(later).toEqual({ outcome: 'waiting', requestId: id, place });
        expect(await waiting()).toBe(3);
      });

      test('is approved if its turn comes before', async () => {
        await fill();
        const kept = await keep({ answerMillis: WINDOW + 1000 });
        await harness.advance(WINDOW);
        expect(await kept.decision).toEqual(sameApproval());
        await harness.advance(KEEP);
        expect(harness.unclaimed()).toBe(0);
        expect(await inspect()).toMatchObject({ held: 0, waiting: 0 });
      });
    });

    describe('a request that is approved while its caller is gone', () => {
      test('is kept for its caller, who gets the approval', async () => {
        await grant();
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1, waiting: 0 });
        expect(harness.limiter.waiting()).toBe(0);
        expect(await comeBack().decision).toEqual(sameApproval());
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 0 });
        expect(await comeBack().decision).toEqual(sameApproval());
        expect(await used()).toBe(1);
        await harness.advance(WINDOW);
        expect(await used()).toBe(0);
        await harness.advance(KEEP);
        expect(harness.unclaimed()).toBe(0);
      });

      test('counts in the window in which its caller comes', async () => {
        await grant();
        await harness.advance(2 * WINDOW);
        expect(await used()).toBe(1);
        expect(await check({ requestId: id })).toEqual(sameApproval());
        await harness.advance(WINDOW - 1);
        expect(await used()).toBe(1);
        await harness.advance(1);
        expect(await used()).toBe(0);
        expect(await check({ requestId: id })).toEqual(sameApproval());
        expect(await used()).toBe(0);
      });

      test('lapses after keepMillis, and is unknown then', async () => {
        await grant();
        await harness.advance(KEEP - 1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
        await harness.advance(1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }], held: 0 });
        await expectUnknown();
        expect(harness.unclaimed()).toBe(1);
      });

      test.each<[string, Partial<FurtherLimit>]>([
        ['fixed windows', {}],
        ['fixed windows that keep what is released', { keepsReleased: true }],
        ['a sliding window', { algorithm: { name: 'sliding_window', steps: 10 } }],
        ['a bucket', { algorithm: { name: 'token_bucket', burst: 1 } }],
      ])('leaves its room in %s to the next one when it lapses', async (_, kind) => {
        const full = { name: 'full', windowMillis: BLOCKED, maximum: 1, keepsReleased: false };
        const further = [{ ...full, counts: 'requests' as const, ...kind }];
        await restart({ ...LIMITS, windowMillis: BLOCKED, further }, {});
        await harness.limiter.ask('pause', { key, millis: 1000 });
        await leave(await keep());
        const next = await wait();
        await harness.advance(1000);
        expect(await held()).toBe(1);
        await harness.advance(KEEP - 1);
        await harness.quiet();
        expect(next.settled).toBeUndefined();
        await harness.advance(1);
        expect(await next.decision).toMatchObject({ outcome: 'approved' });
      });

      test('is given back by a release, as one that nobody has got', async () => {
        await grant();
        expect(await release(id)).toBe(true);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }], held: 0 });
        expect(await release(id)).toBe(false);
        await expectUnknown();
        await harness.advance(KEEP);
        expect(await held()).toBe(0);
        expect(harness.unclaimed()).toBe(0);
      });

      test('is corrected only once its caller has got it', async () => {
        await grant();
        expect(await harness.limiter.ask('amend', { key, requestId: id, hits: 2 })).toBeUndefined();
        expect(await harness.limiter.ask('amend', { key, requestId: id })).toBeUndefined();
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
        await check({ requestId: id });
        expect(await harness.limiter.ask('amend', { key, requestId: id, hits: 2 })).toEqual({});
        expect(await used()).toBe(2);
      });

      test('waits for no place among the holds of its key', async () => {
        await restart(LIMITS, { maxHoldsPerKey: 1 });
        await grant();
        expect(await held()).toBe(1);
        await approve({ holdMillis: KEEP });
        expect(await held()).toBe(2);
        expect(await check({ requestId: id })).toEqual(sameApproval());
        expect(await held()).toBe(1);
      });
    });

    describe('a request whose approval will be held', () => {
      const HOLD = 3 * WINDOW;

      test('is kept for its caller, and for its own time once the caller has got it', async () => {
        await grant({ holdMillis: HOLD });
        await harness.advance(KEEP - 1);
        expect(await comeBack({ holdMillis: HOLD }).decision).toEqual(sameApproval());
        await harness.advance(HOLD - 1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
        await harness.advance(1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }], held: 0 });
        await expectConflict(comeBack({ holdMillis: HOLD }).decision, 'used');
        expect(harness.unclaimed()).toBe(0);
      });

      test('waits for a place among the holds of its key', async () => {
        await restart(LIMITS, { maxHoldsPerKey: 1 });
        const holding = await approve({ holdMillis: BLOCKED });
        await leave(await keep({ holdMillis: HOLD }));
        await harness.advance(WINDOW);
        expect(await inspect()).toMatchObject({ held: 1, waiting: 1 });
        await release(holding);
        expect(await inspect()).toMatchObject({ held: 1, waiting: 0 });
        expect(await comeBack({ holdMillis: HOLD }).decision).toEqual(sameApproval());
        expect(await held()).toBe(1);
      });
    });

    describe('the longest wait of a request with a place', () => {
      test('begins with its place, and goes on over all its checks', async () => {
        await block();
        const kept = await keep({ maxWaitMillis: 2 * WINDOW });
        await harness.advance(WINDOW);
        await leave(kept);
        const later = comeBack({ maxWaitMillis: 2 * WINDOW });
        await harness.advance(WINDOW - 1);
        expect(later.settled).toBeUndefined();
        await harness.advance(1);
        expect(await later.decision).toMatchObject({ outcome: 'denied', reason: 'wait_expired' });
        await untilWaiting(0);
      });

      test('ends it also while its caller is gone', async () => {
        const blocking = await block();
        await leave(await keep({ maxWaitMillis: WINDOW }));
        const last = await wait();
        await harness.advance(WINDOW - 1);
        expect(await waiting()).toBe(2);
        await harness.advance(1);
        await untilWaiting(1);
        await release(blocking);
        expect(await last.decision).toMatchObject({ outcome: 'approved' });
        await expectUnknown();
      });

      test('is the one that the newest check says', async () => {
        await block();
        await leave(await keep({ maxWaitMillis: WINDOW }));
        const later = comeBack({ maxWaitMillis: 3 * WINDOW });
        await harness.advance(3 * WINDOW - 1);
        expect(later.settled).toBeUndefined();
        expect(await waiting()).toBe(1);
        await harness.advance(1);
        expect(await later.decision).toMatchObject({ reason: 'wait_expired' });
      });
    });

    describe('with further limits', () => {
      const further = furtherLimits(20 * WINDOW);
      beforeEach(() => restart({ ...LIMITS, further }, {}));
      const usedOfEach = async (): Promise<number[] | undefined> =>
        (await inspect())?.limits.map((each) => each.used);

      test('an approval that is kept for its caller counts once in each', async () => {
        await grant({ hits: 2 });
        expect(await usedOfEach()).toEqual([2, 4, 2, 4, 4]);
        expect(await comeBack({ hits: 2 }).decision).toEqual(sameApproval());
        expect(await usedOfEach()).toEqual([2, 4, 2, 4, 4]);
        await harness.advance(WINDOW);
        expect(await usedOfEach()).toEqual([0, 4, 2, 4, 4]);
        expect(await release(id)).toBe(true);
        expect(await usedOfEach()).toEqual([0, 2, 2, 2, 4]);
      });

      test('an approval that has lapsed counts in none for a call that only looks', async () => {
        await grant({ hits: 2 });
        await harness.advance(KEEP);
        expect(await usedOfEach()).toEqual([0, 2, 1, 2, 2]);
        const { quota } = await harness.limiter.ask('peek', { key });
        expect(quota?.limits.map(({ remaining }) => remaining)).toEqual([2, 7, 8, 7, 7]);
      });
    });

    describe('its process is told that a place has ended', () => {
      let ended: number;
      const onPlaceEnded = (): void => {
        ended += 1;
      };
      beforeEach(() => {
        ended = 0;
      });

      test('when its request is approved', async () => {
        await fill();
        const kept = comeBack({ onPlaceEnded });
        await harness.quiet();
        await leave(kept);
        expect(ended).toBe(0);
        await harness.advance(WINDOW);
        expect(ended).toBe(1);
      });

      test('when its time is over', async () => {
        await block();
        await comeBack({ onPlaceEnded, answerMillis: 0 }).decision;
        expect(ended).toBe(0);
        await harness.advance(KEEP);
        await until(() => ended === 1);
      });

      test('when another check has it, or a release has withdrawn it', async () => {
        await block();
        await comeBack({ onPlaceEnded, answerMillis: 0 }).decision;
        await comeBack({ onPlaceEnded, answerMillis: 0 }).decision;
        await until(() => ended === 1);
        await release(id);
        await until(() => ended === 2);
      });
    });
  });
}
