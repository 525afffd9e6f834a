import type {
  CheckRequest,
  Decision,
  InstanceState,
  Limits,
} from '../../../src/limiter/limiter.js';
import type { HarnessFactory, LimiterHarness } from '../limiter-harness.js';
import { uniqueKey } from '../unique-key.js';
import { startWaiting, type WatchedCheck } from '../watched-check.js';

const WINDOW = 1000;
const LIMITS: Limits = { windowMillis: WINDOW, maxRequests: 10, maxRequestsInQueue: 5 };

/** The behaviour of every limiter for checks that ask for many approvals at once. */
export function describeHits(name: string, createHarness: HarnessFactory): void {
  describe(`hits: ${name}`, () => {
    let harness: LimiterHarness;
    let key: string;
    beforeEach(async () => {
      harness = await createHarness(LIMITS);
      key = uniqueKey();
    });
    afterEach(() => harness.close());

    const check = (hits: number, more: Partial<CheckRequest> = {}): Promise<Decision> =>
      harness.limiter.check({ key, canWait: false, hits, ...more });
    const approve = async (hits: number): Promise<string> => {
      const decision = await check(hits);
      if (decision.outcome !== 'approved') throw new Error(decision.outcome);
      return decision.requestId;
    };
    const release = (requestId: string, hits?: number): Promise<boolean> =>
      harness.limiter.release(key, requestId, { hits });
    const inspect = (): Promise<InstanceState | undefined> => harness.limiter.inspect(key);
    const wait = (): Promise<WatchedCheck> => startWaiting(harness.limiter, key);

    describe('a check', () => {
      test('counts as so many approvals, and says how many are left', async () => {
        expect(await check(4)).toMatchObject({
          outcome: 'approved',
          requestId: expect.stringMatching(/^[-0-9a-f]{36}$/) as unknown,
          quota: { maxRequests: 10, remaining: 6 },
        });
        expect(await inspect()).toMatchObject({ approved: 4, denied: 0 });
        expect(await check(1)).toMatchObject({ quota: { remaining: 5 } });
      });

      test('may take all that are left', async () => {
        await approve(3);
        expect(await check(7)).toMatchObject({ outcome: 'approved', quota: { remaining: 0 } });
        expect(await check(1)).toMatchObject({ outcome: 'denied' });
        expect(await inspect()).toMatchObject({ approved: 10, denied: 1 });
      });

      test('of one more than are left counts as one denial, and takes nothing', async () => {
        await approve(3);
        expect(await check(8)).toMatchObject({
          outcome: 'denied',
          reason: 'limit_reached',
          quota: { remaining: 7 },
        });
        expect(await inspect()).toMatchObject({ approved: 3, denied: 1 });
        expect(await check(7)).toMatchObject({ outcome: 'approved' });
      });

      test('of more than the maximum is denied, even in an empty window', async () => {
        expect(await check(11)).toMatchObject({ outcome: 'denied', quota: { remaining: 10 } });
        await harness.advance(WINDOW);
        expect(await check(11)).toMatchObject({ outcome: 'denied' });
        expect(await inspect()).toMatchObject({ approved: 0, denied: 1 });
      });

      test('counts only in its window', async () => {
        await approve(10);
        await harness.advance(WINDOW);
        expect(await check(10)).toMatchObject({ outcome: 'approved', quota: { remaining: 0 } });
      });

      test('can have overrides, which apply to the check itself', async () => {
        expect(await check(11, { maxRequests: 12 })).toMatchObject({
          outcome: 'approved',
          quota: { maxRequests: 12, remaining: 1 },
        });
        expect(await check(2, { maxRequests: 2 })).toMatchObject({ outcome: 'denied' });
        expect(await inspect()).toMatchObject({
          approved: 11,
          denied: 1,
          limits: { maxRequests: 2 },
        });
      });

      test('does not take the room of waiters', async () => {
        await approve(10);
        const waiter = await wait();
        expect(await check(2)).toMatchObject({ outcome: 'denied' });
        await harness.advance(WINDOW);
        expect(await check(10)).toMatchObject({ outcome: 'denied', quota: { remaining: 9 } });
        expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
        expect(await check(9)).toMatchObject({ outcome: 'approved' });
      });

      test('that raises the maximum serves the waiters first', async () => {
        await approve(10);
        const waiters = [await wait(), await wait()];
        expect(await check(2, { maxRequests: 13 })).toMatchObject({
          outcome: 'denied',
          quota: { remaining: 1 },
        });
        for (const { decision } of waiters) expect(await decision).toMatchObject({ waited: true });
        expect(await inspect()).toMatchObject({ approved: 12, denied: 1, waiting: 0 });
      });

      test('is decided in its order among the checks of its batch', async () => {
        const hits = [1, 4, 1, 6, 3, 1, 1];
        const decisions = await Promise.all(hits.map((each) => check(each)));
        expect(
          decisions.map((each) => [each.outcome, 'quota' in each && each.quota?.remaining]),
        ).toEqual([
          ['approved', 9],
          ['approved', 5],
          ['approved', 4],
          ['denied', 4],
          ['approved', 1],
          ['approved', 0],
          ['denied', 0],
        ]);
        expect(await inspect()).toMatchObject({ approved: 10, denied: 2 });
      });
    });

    test('a check fails, and is not denied, if the limit of stored ids has no room', async () => {
      await harness.close();
      harness = await createHarness(LIMITS, 5);
      await expect(check(6)).rejects.toMatchObject({ reason: 'key_full' });
      expect(await check(3)).toMatchObject({ outcome: 'approved' });
      await expect(check(3)).rejects.toMatchObject({ reason: 'key_full' });
      await expect(check(7)).rejects.toMatchObject({ reason: 'key_full' });
      // If the maximum also has no room for so many, the check is denied.
      expect(await check(8)).toMatchObject({ outcome: 'denied' });
      expect(await inspect()).toMatchObject({ approved: 3, denied: 1 });
      expect(await check(2)).toMatchObject({ outcome: 'approved' });
    });

    describe('a release', () => {
      test('with as many hits gives all approvals back, once', async () => {
        const requestId = await approve(4);
        await approve(2);
        expect(await release(requestId, 4)).toBe(true);
        expect(await inspect()).toMatchObject({ approved: 2 });
        expect(await release(requestId, 4)).toBe(false);
        expect(await release(requestId)).toBe(false);
        expect(await inspect()).toMatchObject({ approved: 2 });
        expect(await check(8)).toMatchObject({ outcome: 'approved' });
      });

      test('without hits gives one approval back, and another with hits the rest', async () => {
        const requestId = await approve(4);
        expect(await release(requestId)).toBe(true);
        expect(await inspect()).toMatchObject({ approved: 3 });
        expect(await release(requestId)).toBe(false);
        expect(await release(requestId, 4)).toBe(true);
        expect(await inspect()).toMatchObject({ approved: 0 });
      });

      test('with more hits than were approved gives back no more', async () => {
        const requestId = await approve(2);
        await approve(3);
        expect(await release(requestId, 6)).toBe(true);
        expect(await inspect()).toMatchObject({ approved: 3 });
      });

      test('does not find approvals of an earlier window', async () => {
        const requestId = await approve(4);
        await harness.advance(WINDOW);
        await approve(5);
        expect(await release(requestId, 4)).toBe(false);
        expect(await inspect()).toMatchObject({ approved: 5 });
      });

      test('gives the room to the waiters in their order', async () => {
        const requestId = await approve(2);
        await approve(8);
        const waiters = [await wait(), await wait(), await wait()];
        expect(await release(requestId, 2)).toBe(true);
        expect(await waiters[0]!.decision).toMatchObject({ waited: true });
        expect(await waiters[1]!.decision).toMatchObject({ waited: true });
        await harness.quiet();
        expect(waiters[2]!.settled).toBeUndefined();
        expect(await inspect()).toMatchObject({ approved: 10, waiting: 1 });
      });
    });
  });
}
