import type { Decision, InstanceDetail, Quota } from '../../../src/limiter/limiter.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { uniqueKey } from '../unique-key.js';
import { until } from '../until.js';
import { startCheck, startWaiting } from '../watched-check.js';
import { useKey } from './use-key.js';

const WINDOW = 1000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 3 };

/** The behaviour of every limiter. */
export function describeLimiter(name: string, createHarness: HarnessFactory): void {
  describe(name, () => {
    const subject = useKey(createHarness, LIMITS);
    const { harness, key, check, outcome, approve, wait, release, inspect } = subject;
    const fill = async (): Promise<string[]> => [await approve(), await approve()];

    describe('a key in detail', () => {
      const examine = (mostQueued = 10): Promise<InstanceDetail | undefined> =>
        harness.limiter.ask('examine', { key, mostQueued });

      test('has the state, and the time to the end of the window', async () => {
        await fill();
        await outcome();
        await harness.advance(300);
        expect(await examine()).toMatchObject({
          ...(await inspect()),
          limits: [{ used: 2, millisToWindowEnd: 700 }],
          overridden: { maxRequests: false, maxRequestsInQueue: false, windowMillis: false },
          isRecovering: false,
          queue: [],
          replicas: [],
        });
      });

      test('says which maxima requests have set', async () => {
        const none = { maxRequests: false, maxRequestsInQueue: false, windowMillis: false };
        const one = { ...none, maxRequests: true };
        await check({ maxRequests: 1 });
        expect(await examine()).toMatchObject({ overridden: one });
        await check({ maxRequestsInQueue: 7 });
        expect(await examine()).toMatchObject({ overridden: { ...one, maxRequestsInQueue: true } });
      });

      test('has the waiters in their order, with their waiting times, and at most as many as asked for', async () => {
        const small = await createHarness(LIMITS);
        await small.limiter.check({ key, canWait: false, maxRequests: 1 });
        await startWaiting(small.limiter, key);
        await small.advance(300);
        const second = await startWaiting(small.limiter, key);
        await small.advance(200);
        await startWaiting(small.limiter, key);
        const waited = async (most: number): Promise<unknown> =>
          (await small.limiter.ask('examine', { key, mostQueued: most }))?.queue.map(
            ({ waitedMillis }) => waitedMillis,
          );
        expect(await waited(10)).toEqual([500, 200, 0]);
        expect(await waited(2)).toEqual([500, 200]);

        second.disconnect();
        await until(async () => (await small.limiter.ask('inspect', { key }))?.waiting === 2);
        expect(await waited(10)).toEqual([500, 0]);
        const [replica, ...others] = (await small.limiter.ask('examine', { key, mostQueued: 0 }))!
          .replicas;
        expect([replica?.places, others]).toEqual([2, []]);
        await small.close();
      });
    });

    describe('windows', () => {
      test('approves up to the maximum, each with an id of its own, then denies', async () => {
        const [first, second] = await fill();
        expect(first).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        expect(second).not.toBe(first);
        expect(await outcome()).toBe('denied');
        expect(await inspect()).toEqual({
          key,
          limits: [
            { ...ownLimit(WINDOW, 2), used: 2, millisToWindowEnd: expect.any(Number) as unknown },
          ],
          maxRequestsInQueue: 3,
          held: 0,
          denied: 1,
          waiting: 0,
          pausedMillis: 0,
        });
      });

      test('a thousand checks at once approve exactly the maximum', async () => {
        const decisions = await Promise.all(
          Array.from({ length: 1000 }, () => outcome({ maxRequests: 137 })),
        );
        expect(decisions.filter((decision) => decision === 'approved')).toHaveLength(137);
        expect(await inspect()).toMatchObject({ limits: [{ used: 137 }], denied: 863 });
      });

      test('a decision says how many approvals the window has left', async () => {
        expect(await check()).toMatchObject({ quota: { limits: [{ maximum: 2, remaining: 1 }] } });
        expect(await check()).toMatchObject({ quota: { limits: [{ maximum: 2, remaining: 0 }] } });
        expect(await check()).toMatchObject({ quota: { limits: [{ maximum: 2, remaining: 0 }] } });
        expect(await check({ maxRequests: 5 })).toMatchObject({
          quota: { limits: [{ maximum: 5, remaining: 2 }] },
        });
      });

      test('a check fails, and is not denied, if the key has as many ids as are stored', async () => {
        const small = await createHarness(LIMITS, { maxIdsPerKey: 1 });
        const ask = (): Promise<Decision> => small.limiter.check({ key, canWait: false });
        expect(await ask()).toMatchObject({ outcome: 'approved' });
        await expect(ask()).rejects.toMatchObject({ reason: 'key_full' });
        expect(await small.limiter.ask('inspect', { key })).toMatchObject({
          limits: [{ used: 1 }],
          denied: 0,
        });
        const waiting = await startWaiting(small.limiter, key);
        await small.advance(WINDOW);
        expect(await waiting.decision).toMatchObject({ outcome: 'approved' });
        await small.close();
      });

      test('a denial says when the window ends', async () => {
        await fill();
        await harness.advance(400);
        expect(await check()).toMatchObject({ outcome: 'denied' });
        const denied = (await check()) as { quota: Quota };
        expect([600, 1000]).toContain(denied.quota.limits[0].resetMillis);
      });

      test('the window ends on the millisecond, and the next starts at zero', async () => {
        await fill();
        await harness.advance(WINDOW - 1);
        expect(await outcome()).toBe('denied');
        await harness.advance(1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }], denied: 0 });
        await approve();
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], denied: 0 });
      });

      test('windows follow each other from the first check, whenever later checks come', async () => {
        await approve();
        await harness.advance(WINDOW * 1.5);
        await fill();
        await harness.advance(WINDOW / 2 - 1);
        expect(await outcome()).toBe('denied');
        await harness.advance(1);
        expect(await outcome()).toBe('approved');
      });

      test('keys are independent', async () => {
        await fill();
        const other = uniqueKey();
        expect(await outcome({ key: other })).toBe('approved');
        expect(await harness.limiter.ask('inspect', { key: other })).toMatchObject({
          limits: [{ used: 1 }],
          denied: 0,
        });
        expect(await outcome()).toBe('denied');
      });
    });

    describe('the queue', () => {
      test('waiters are approved in later windows, in order of arrival', async () => {
        await fill();
        const waiters = [await wait(), await wait(), await wait()];
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], waiting: 3 });

        await harness.advance(WINDOW);
        const decisions = await Promise.all([waiters[0]!.decision, waiters[1]!.decision]);
        expect(decisions.map((decision) => decision.outcome)).toEqual(['approved', 'approved']);
        expect(waiters[2]!.settled).toBeUndefined();
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], waiting: 1 });

        await harness.advance(WINDOW);
        expect(await waiters[2]!.decision).toMatchObject({ outcome: 'approved' });
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }], waiting: 0 });
      });

      test('a later check does not overtake waiters', async () => {
        await fill();
        const waiters = [await wait(), await wait(), await wait()];
        await harness.advance(WINDOW);
        expect(await outcome()).toBe('denied');
        const late = await wait();
        await harness.advance(WINDOW);
        expect(await waiters[2]!.decision).toMatchObject({ outcome: 'approved' });
        expect(await late.decision).toMatchObject({ outcome: 'approved' });
      });

      test('a full queue denies a check, and does not count it as a denial', async () => {
        await fill();
        for (let i = 0; i < LIMITS.maxRequestsInQueue; i += 1) await wait();
        expect(await outcome({ canWait: true })).toBe('denied');
        expect(await inspect()).toMatchObject({ denied: 0, waiting: 3 });
      });

      test('a queue of size zero lets no check wait', async () => {
        await fill();
        expect(await outcome({ canWait: true, maxRequestsInQueue: 0 })).toBe('denied');
        expect(await inspect()).toMatchObject({ waiting: 0 });
      });

      test('a waiter that disconnects makes room in the queue and delays no other waiter', async () => {
        await fill();
        const waiters = [await wait(), await wait(), await wait()];
        waiters[0]!.disconnect();
        expect(await waiters[0]!.decision).toEqual({ outcome: 'withdrawn' });
        await until(async () => (await inspect())?.waiting === 2);
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], denied: 0 });
        const last = await wait();
        await harness.advance(WINDOW);
        await Promise.all([waiters[1]!.decision, waiters[2]!.decision]);
        expect(last.settled).toBeUndefined();
        await harness.advance(WINDOW);
        expect(await last.decision).toMatchObject({ outcome: 'approved' });
      });

      test('a caller that disconnects before the answer leaves nothing behind', async () => {
        await fill();
        const disconnected = startCheck(harness.limiter, { key, canWait: true });
        disconnected.disconnect();
        expect(await disconnected.decision).toEqual({ outcome: 'withdrawn' });
        const next = startCheck(harness.limiter, { key, canWait: true });
        await until(async () => {
          await harness.advance(WINDOW);
          return next.settled;
        });
        expect(next.settled).toMatchObject({ outcome: 'approved' });
        await until(async () => {
          await harness.advance(WINDOW);
          const state = await inspect();
          return state === undefined || (state.limits[0].used === 0 && state.waiting === 0);
        });
      });

      test('an approval that crosses with the disconnect of its client can be released', async () => {
        const [first] = await fill();
        const waiter = await wait();
        const next = await wait();
        const released = release(first!);
        waiter.disconnect();
        expect(await released).toBe(true);
        const decision = await waiter.decision;
        if (decision.outcome === 'approved') {
          expect(await release(decision.requestId)).toBe(true);
        }
        expect(await next.decision).toMatchObject({ outcome: 'approved' });
        await harness.quiet();
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], waiting: 0 });
      });

      test('waiters are turned away when the limiter closes', async () => {
        await fill();
        const waiter = await wait();
        const turnedAway = expect(waiter.decision).rejects.toMatchObject({
          reason: 'shutting_down',
        });
        await harness.close();
        await turnedAway;
        await expect(check({ canWait: true })).rejects.toMatchObject({ reason: 'shutting_down' });
      });
    });

    describe('release', () => {
      test('makes room once', async () => {
        const [first] = await fill();
        expect(await release(first!)).toBe(true);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }] });
        expect(await release(first!)).toBe(false);
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }] });
        expect(await outcome()).toBe('approved');
        expect(await outcome()).toBe('denied');
      });

      test('does not find unknown ids or keys', async () => {
        await approve();
        const unknown = 'ffffffff-ffff-4fff-bfff-ffffffffffff';
        expect(await release(unknown)).toBe(false);
        expect(await harness.limiter.ask('release', { key: uniqueKey(), requestId: unknown })).toBe(
          false,
        );
        expect(await inspect()).toMatchObject({ limits: [{ used: 1 }] });
      });

      test('does not find approvals of a window that has ended', async () => {
        const [first] = await fill();
        await harness.advance(WINDOW);
        expect(await release(first!)).toBe(false);
        await fill();
        expect(await release(first!)).toBe(false);
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }] });
      });

      test('approves the head of the queue at once', async () => {
        const [first] = await fill();
        const head = await wait();
        const second = await wait();
        await release(first!);
        expect(await head.decision).toMatchObject({ outcome: 'approved' });
        expect(await outcome()).toBe('denied');
        expect(second.settled).toBeUndefined();
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }], waiting: 1 });
      });
    });

    describe('overrides', () => {
      test('apply from the check that has them, for every caller, until the key is removed', async () => {
        expect(await outcome({ maxRequests: 1, maxRequestsInQueue: 7 })).toBe('approved');
        expect(await outcome()).toBe('denied');
        expect(await inspect()).toMatchObject({
          limits: [ownLimit(WINDOW, 1)],
          maxRequestsInQueue: 7,
        });
        await harness.advance(WINDOW * 4);
        expect(await inspect()).toBeUndefined();
        await approve();
        expect(await inspect()).toMatchObject({
          limits: [ownLimit(WINDOW, 2)],
          maxRequestsInQueue: 3,
        });
      });

      test('a raised maximum serves the queue before the check that raised it', async () => {
        await fill();
        const waiters = [await wait(), await wait()];
        expect(await outcome({ maxRequests: 4 })).toBe('denied');
        const decisions = await Promise.all(waiters.map((waiter) => waiter.decision));
        expect(decisions.map((decision) => decision.outcome)).toEqual(['approved', 'approved']);
        expect(await inspect()).toMatchObject({ limits: [{ used: 4 }], waiting: 0 });
      });

      test('a lowered maximum revokes no approvals, and approves no more', async () => {
        const [first] = await fill();
        expect(await outcome({ maxRequests: 1 })).toBe('denied');
        expect(await inspect()).toMatchObject({ limits: [{ used: 2 }] });
        await release(first!);
        expect(await outcome()).toBe('denied');
        await harness.advance(WINDOW);
        expect(await outcome()).toBe('approved');
        expect(await outcome()).toBe('denied');
      });

      test('a lowered queue size keeps the present waiters', async () => {
        await fill();
        const waiters = [await wait(), await wait()];
        expect(await outcome({ canWait: true, maxRequestsInQueue: 1 })).toBe('denied');
        expect(await inspect()).toMatchObject({ waiting: 2 });
        await harness.advance(WINDOW);
        await Promise.all(waiters.map((waiter) => waiter.decision));
      });
    });

    describe('idle keys', () => {
      test('are removed at the end of the third window without a check', async () => {
        await approve();
        await harness.advance(WINDOW * 4 - 1);
        expect(await inspect()).toMatchObject({ limits: [{ used: 0 }] });
        await harness.advance(1);
        expect(await inspect()).toBeUndefined();
      });

      test('are kept by a check, even by a denied one', async () => {
        await fill();
        await harness.advance(WINDOW * 3.5);
        await fill();
        expect(await outcome()).toBe('denied');
        await harness.advance(WINDOW * 3.5 - 1);
        expect(await inspect()).toBeDefined();
        await harness.advance(1);
        expect(await inspect()).toBeUndefined();
      });

      test('are not kept by releases', async () => {
        const requestId = await approve();
        await harness.advance(WINDOW * 2);
        expect(await release(requestId)).toBe(false);
        await harness.advance(WINDOW * 2);
        expect(await inspect()).toBeUndefined();
      });

      test('are kept by waiters', async () => {
        expect(await outcome({ maxRequests: 1 })).toBe('approved');
        const waiters = [await wait(), await wait(), await wait()];
        await harness.advance(WINDOW * 3);
        await Promise.all(waiters.map((waiter) => waiter.decision));
        await harness.advance(WINDOW * 4 - 1);
        expect(await inspect()).toMatchObject({ limits: [{ maximum: 1 }] });
        await harness.advance(1);
        expect(await inspect()).toBeUndefined();
      });
    });

    test('the list names every key that exists, once', async () => {
      // More than one page.
      const keys = Array.from({ length: 250 }, uniqueKey);
      await Promise.all(keys.map((each) => outcome({ key: each })));
      const listed: string[] = [];
      for await (const page of harness.limiter.list()) listed.push(...page.map(({ key }) => key));
      expect(listed.sort()).toEqual([...keys].sort());
      await harness.advance(WINDOW * 4);
      for await (const page of harness.limiter.list()) expect(page).toEqual([]);
    });
  });
}
