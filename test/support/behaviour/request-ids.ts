import { randomUUID } from 'node:crypto';

import type { CheckRequest, Decision } from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import { type DeclaredLimits, furtherLimits } from '../limits.js';
import { uniqueKey } from '../unique-key.js';
import { until } from '../until.js';
import { startCheck, type WatchedCheck } from '../watched-check.js';
import { useKey } from './use-key.js';

/** Three of them are two leases of a replica, for which the limiter on Redis remembers a request at least. */
const WINDOW = 4000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 5 };
const HOLD = 2.5 * WINDOW;

/** The behaviour of every limiter for request ids of the caller's choice. */
export function describeRequestIds(name: string, createHarness: HarnessFactory): void {
  describe(`request ids: ${name}`, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, restart, check, outcome, approve, wait, release, inspect } = subject;
    let id: string;
    beforeEach(() => {
      id = randomUUID();
    });
    const fill = async (): Promise<string[]> => [await approve(), await approve()];
    const used = async (): Promise<number | undefined> => (await inspect())?.limits[0].used;
    const waiting = async (): Promise<number | undefined> => (await inspect())?.waiting;
    const begin = (terms: Partial<CheckRequest> = {}): WatchedCheck =>
      startCheck(harness.limiter, { key, canWait: true, requestId: id, ...terms });
    const sameApproval = (): unknown =>
      expect.objectContaining({ outcome: 'approved', requestId: id });
    /** Sends a check that takes the place of an earlier one, and returns when it has. */
    const takeOver = async (
      earlier: WatchedCheck,
      terms: Partial<CheckRequest> = {},
    ): Promise<WatchedCheck> => {
      const later = begin(terms);
      await expectConflict(earlier.decision, 'taken_over');
      return later;
    };
    const expectUnknown = async (): Promise<void> => {
      const before = (await used()) ?? 0;
      expect(await check({ requestId: id })).toEqual(sameApproval());
      expect(await used()).toBe(before + 1);
    };

    describe('a check with an id', () => {
      test('that is unknown is a new request with this id', async () => {
        expect(await approve({ requestId: id })).toBe(id);
        const other = randomUUID();
        expect(await approve({ requestId: other })).toBe(other);
        expect(await outcome({ requestId: randomUUID() })).toBe('denied');
        expect(await used()).toBe(2);
      });

      test('that was denied is a new request', async () => {
        await fill();
        for (let attempt = 0; attempt < 2; attempt += 1) {
          expect(await outcome({ requestId: id })).toBe('denied');
        }
        expect(await check({ requestId: id, hits: 3 })).toMatchObject({ reason: 'too_many_hits' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], denied: 2 });
        await harness.advance(WINDOW);
        await expectUnknown();
      });

      test('that is approved gets the same approval, which counts once', async () => {
        await approve({ requestId: id });
        await approve();
        for (const terms of [{}, { canWait: true }, { canWait: true, maxWaitMillis: 0 }]) {
          expect(await check({ requestId: id, ...terms })).toEqual(sameApproval());
        }
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], denied: 0, waiting: 0 });
        expect(await outcome()).toBe('denied');
      });

      test('that is approved gets the same approval after its window, which then counts nothing', async () => {
        await approve({ requestId: id });
        await harness.advance(WINDOW);
        expect(await check({ requestId: id })).toEqual(sameApproval());
        expect(await used()).toBe(0);
        expect(await release(id)).toBe(false);
        expect(await check({ requestId: id })).toEqual(sameApproval());
      });

      test('that was released is rejected', async () => {
        await approve({ requestId: id });
        expect(await release(id)).toBe(true);
        await expectConflict(check({ requestId: id }), 'used');
        await harness.advance(WINDOW);
        await expectConflict(check({ requestId: id, canWait: true }), 'used');
        expect(await used()).toBe(0);
        expect(await release(id)).toBe(false);
      });

      test('of another key is another request', async () => {
        const other = uniqueKey();
        await fill();
        const earlier = await wait({ requestId: id });
        const ofOther = await harness.limiter.check({ key: other, canWait: false, requestId: id });
        expect(ofOther).toEqual(sameApproval());
        expect(await harness.limiter.ask('release', { key: other, requestId: id })).toBe(true);
        await harness.quiet();
        expect(earlier.failure).toBeUndefined();
        await harness.advance(WINDOW);
        expect(await earlier.decision).toEqual(sameApproval());
        expect(await release(id)).toBe(true);
      });

      test('twice at once is one approval', async () => {
        const order = {};
        const decisions = await Promise.all([
          check({ requestId: id, order }),
          check({ requestId: id, order }),
        ]);
        expect(decisions).toEqual([sameApproval(), sameApproval()]);
        expect(await used()).toBe(1);
      });

      test('that Sluice has made counts once', async () => {
        id = await approve();
        expect(await check({ requestId: id })).toEqual(sameApproval());
        expect(await used()).toBe(1);
        expect(await release(id)).toBe(true);
        expect(await used()).toBe(0);
      });
    });

    describe('the terms of a request', () => {
      const HITS = [{ hits: 2 }, 'other_hits'] as const;
      const HELD = [{ holdMillis: HOLD }, 'other_hold'] as const;
      /** How a request came to its state, with the terms of `asked`. */
      const STATES: [string, (asked: Partial<CheckRequest>) => Promise<unknown>][] = [
        ['waits', (asked) => wait({ requestId: id, ...asked })],
        ['is approved', (asked) => check({ requestId: id, ...asked })],
        [
          'was released',
          async (asked) => {
            await check({ requestId: id, ...asked });
            await release(id);
          },
        ],
      ];

      test.each(STATES)('are the same in all checks of one that %s', async (state, bring) => {
        const asked = { hits: 1, holdMillis: HOLD };
        const filling = state === 'waits' ? await fill() : [];
        await bring(asked);
        const before = await inspect();
        await expectConflict(check({ requestId: id, ...asked, ...HITS[0] }), HITS[1]);
        await expectConflict(check({ requestId: id, canWait: true, ...HITS[0] }), HITS[1]);
        await expectConflict(check({ requestId: id, ...asked, holdMillis: HOLD / 2 }), HELD[1]);
        await expectConflict(check({ requestId: id, canWait: true }), HELD[1]);
        expect(await inspect()).toMatchObject({
          limits: [{ used: before?.limits[0].used }],
          held: before?.held,
          waiting: filling.length / 2,
        });
      });

      test('stay what was asked for if the approval is corrected', async () => {
        await approve({ requestId: id });
        await harness.limiter.ask('amend', { key, requestId: id, hits: 2 });
        expect(await check({ requestId: id })).toEqual(sameApproval());
        expect(await used()).toBe(2);
      });
    });

    describe('a held request', () => {
      test('gets the same approval until its hold lapses, and is rejected then', async () => {
        await approve({ requestId: id, holdMillis: HOLD });
        await harness.advance(HOLD - 1);
        expect(await check({ requestId: id, holdMillis: HOLD })).toEqual(sameApproval());
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
        // The second check renewed nothing.
        await harness.advance(1);
        expect(await inspect()).toMatchObject({ held: 0 });
        await expectConflict(check({ requestId: id, holdMillis: HOLD }), 'used');
        expect(await used()).toBe(0);
      });

      test('is remembered for as long as it is held, also if it is renewed', async () => {
        await approve({ requestId: id, holdMillis: HOLD });
        for (let renewal = 0; renewal < 3; renewal += 1) {
          await harness.advance(HOLD - 1);
          expect(await harness.limiter.ask('amend', { key, requestId: id })).toEqual({
            holdMillis: HOLD,
          });
        }
        await harness.advance(HOLD - 1);
        expect(await check({ requestId: id, holdMillis: HOLD })).toEqual(sameApproval());
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], held: 1 });
      });
    });

    describe('a check of a request that waits', () => {
      test('takes its place over, and its turn comes when it would have', async () => {
        await fill();
        const first = await wait();
        const earlier = await wait({ requestId: id });
        const last = await wait();
        const later = await takeOver(earlier);
        expect(await waiting()).toBe(3);
        await check({ maxRequests: 1 });

        await harness.advance(WINDOW);
        expect(await first.decision).toMatchObject({ outcome: 'approved' });
        await harness.quiet();
        expect([later.settled, last.settled]).toEqual([undefined, undefined]);
        await harness.advance(WINDOW);
        expect(await later.decision).toEqual(sameApproval());
        expect(await later.decision).toMatchObject({ waited: true });
        await harness.quiet();
        expect(last.settled).toBeUndefined();
        await harness.advance(WINDOW);
        expect(await last.decision).toMatchObject({ outcome: 'approved' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], waiting: 0 });
      });

      test('waits for its own longest wait from then on', async () => {
        await approve({ holdMillis: 10 * WINDOW, hits: 2 });
        const earlier = await wait({ requestId: id, maxWaitMillis: WINDOW });
        await harness.advance(WINDOW - 1);
        const later = await takeOver(earlier, { maxWaitMillis: WINDOW });
        await harness.advance(WINDOW - 1);
        expect(later.settled).toBeUndefined();
        expect(await waiting()).toBe(1);
        await harness.advance(1);
        expect(await later.decision).toMatchObject({ outcome: 'denied', reason: 'wait_expired' });
        await until(async () => (await waiting()) === 0);
      });

      test.each([
        ['that can not wait', { canWait: false }],
        ['whose longest wait is 0', { canWait: true, maxWaitMillis: 0 }],
      ])('%s ends the wait', async (_which, terms) => {
        await approve();
        const earlier = await wait({ requestId: id, hits: 2 });
        const next = await wait();
        const ending = check({ requestId: id, hits: 2, ...terms });
        await expectConflict(earlier.decision, 'taken_over');
        expect(await ending).toMatchObject({ outcome: 'denied', reason: 'wait_expired' });
        // It was the head, and needed more than is free.
        expect(await next.decision).toMatchObject({ outcome: 'approved' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], denied: 0, waiting: 0 });
        await harness.advance(WINDOW);
        await expectUnknown();
      });

      test('takes over a place here, although its caller has no place left', async () => {
        await fill();
        const later = await takeOver(await wait({ requestId: id }), { noPlace: true });
        await harness.advance(WINDOW);
        expect(await later.decision).toEqual(sameApproval());
      });
    });

    describe('a disconnect', () => {
      test('of an earlier check changes nothing', async () => {
        await fill();
        const earlier = await wait({ requestId: id });
        const later = await takeOver(earlier);
        earlier.disconnect();
        await harness.quiet();
        expect(await waiting()).toBe(1);
        await harness.advance(WINDOW);
        expect(await later.decision).toEqual(sameApproval());
        expect(await used()).toBe(1);
      });

      test('of the latest check withdraws the place, and the id is unknown', async () => {
        await fill();
        const later = await takeOver(await wait({ requestId: id }));
        const next = await wait();
        later.disconnect();
        expect(await later.decision).toEqual({ outcome: 'withdrawn' });
        await until(async () => (await waiting()) === 1);
        const again = await wait({ requestId: id });
        await check({ maxRequests: 1 });
        await harness.advance(WINDOW);
        expect(await next.decision).toMatchObject({ outcome: 'approved' });
        expect(again.settled).toBeUndefined();
        await harness.advance(WINDOW);
        expect(await again.decision).toEqual(sameApproval());
      });
    });

    describe('an approval', () => {
      const claimOf = (decision: Decision): string =>
        (decision as { readonly claim: string }).claim;
      const giveBack = async (decision: Decision): Promise<void> => {
        await harness.limiter.ask('giveBack', { key, claim: claimOf(decision) });
        await harness.quiet();
      };

      test('is given back by its check, and the id is unknown then', async () => {
        await giveBack(await check({ requestId: id }));
        expect(await used()).toBe(0);
        expect(await check({ requestId: id, hits: 2 })).toEqual(sameApproval());
        expect(await used()).toBe(2);
      });

      test('is given back by no check once several were told of it', async () => {
        const earlier = await check({ requestId: id });
        const later = await check({ requestId: id });
        expect(new Set([id, claimOf(earlier), claimOf(later)]).size).toBe(3);
        for (const told of [earlier, later]) {
          await giveBack(told);
          expect(await used()).toBe(1);
        }
        expect(await check({ requestId: id })).toEqual(sameApproval());
        expect(await used()).toBe(1);
      });

      test('that nobody has got is released as if there had been none', async () => {
        await approve({ requestId: id });
        expect(await harness.limiter.ask('release', { key, requestId: id, isUnused: true })).toBe(
          true,
        );
        expect(await used()).toBe(0);
        await expectUnknown();
      });
    });

    describe('a release of a request that waits', () => {
      test('withdraws it, and the id is unknown', async () => {
        await approve();
        const waiter = await takeOver(await wait({ requestId: id, hits: 2 }), { hits: 2 });
        const next = await wait();
        expect(await release(id)).toBe(true);
        await expectConflict(waiter.decision, 'withdrawn');
        // It was the head, and needed more than is free.
        expect(await next.decision).toMatchObject({ outcome: 'approved' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], waiting: 0 });
        expect(await release(id)).toBe(false);
        await harness.advance(WINDOW);
        await expectUnknown();
      });
    });

    describe('a request is remembered', () => {
      test('for three windows after its last check, and then forgotten', async () => {
        await approve({ requestId: id });
        for (let again = 0; again < 2; again += 1) {
          await harness.advance(3 * WINDOW - 1);
          expect(await check({ requestId: id })).toEqual(sameApproval());
          expect(await used()).toBe(0);
        }
        // Other checks keep the key.
        for (let window = 0; window < 6; window += 1) {
          await harness.advance(WINDOW);
          await approve();
        }
        await expectUnknown();
      });

      test('no longer than its idle key', async () => {
        await approve({ requestId: id, hits: 2 });
        await harness.advance(8 * WINDOW);
        expect(await inspect()).toBeUndefined();
        expect(await check({ requestId: id })).toEqual(sameApproval());
        expect(await used()).toBe(1);
      });
    });

    test('an approval counts once in each further limit, and is given back by each', async () => {
      await restart({ ...LIMITS, further: furtherLimits(10 * WINDOW) }, {});
      const usedOfEach = async (): Promise<number[] | undefined> =>
        (await inspect())?.limits.map((each) => each.used);
      await approve({ requestId: id, hits: 2 });
      expect(await check({ requestId: id, hits: 2 })).toEqual(sameApproval());
      expect(await usedOfEach()).toEqual([2, 2, 1, 2, 2]);
      // It counts in these for longer than it would be remembered.
      await harness.advance(5 * WINDOW);
      expect(await check({ requestId: id, hits: 2 })).toEqual(sameApproval());
      expect(await usedOfEach()).toEqual([0, 2, 1, 2, 2]);
      expect(await release(id)).toBe(true);
      expect(await usedOfEach()).toEqual([0, 0, 1, 0, 2]);
      await expectConflict(check({ requestId: id, hits: 2 }), 'used');
    });
  });
}

/** Expects a check to fail since its request id is known otherwise. */
export async function expectConflict(decision: Promise<Decision>, conflict: string): Promise<void> {
  await expect(decision).rejects.toMatchObject({ name: 'RequestIdConflictError', conflict });
}
