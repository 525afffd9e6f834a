import type { CheckRequest } from '../../../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../../../src/limiter/memory/memory-limiter.js';
import { FifoQueue } from '../../../../src/limiter/memory/queue/fifo-queue.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { policiesWith } from '../../../support/policies.js';
import { startCheck, type WatchedCheck } from '../../../support/watched-check.js';
import { keyLimits } from '../../../support/limits.js';

const ID = '0197c3a2-8b1e-7f00-8d5a-111111111111';
const OTHER_ID = '0197c3a2-8b1e-7f00-8d5a-222222222222';
const THIRD_ID = '0197c3a2-8b1e-7f00-8d5a-333333333333';
const KEEP = 5000;
const LIMITS = keyLimits({ windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 9 });

let clock: ManualClock;
let limiter: MemoryLimiter;
let unclaimed: number;
function limiterFor(maxWaiters: number): MemoryLimiter {
  const observer = { unclaimed: (count: number) => (unclaimed += count) };
  return new MemoryLimiter(
    policiesWith(() => LIMITS),
    clock,
    { maxWaiters },
    observer,
  );
}
beforeEach(async () => {
  clock = new ManualClock(0);
  unclaimed = 0;
  limiter = limiterFor(1);
  await limiter.check({ key: 'key', canWait: false });
});
afterEach(() => limiter.close());

const keep = (terms: Partial<CheckRequest> = {}): WatchedCheck =>
  startCheck(limiter, { key: 'key', canWait: true, requestId: ID, keepMillis: KEEP, ...terms });

test('a kept place counts in the bound of waiters until it ends', async () => {
  keep().disconnect();
  await expect(keep({ requestId: OTHER_ID }).decision).rejects.toMatchObject({
    reason: 'too_many_waiters',
  });
  await clock.advance(1000);
  expect(limiter.waiting).toBe(0);
});

test('no more approvals are kept for their callers than ids are kept of when these come', async () => {
  const limits = keyLimits({ windowMillis: 60_000, maxRequests: 9, maxRequestsInQueue: 9 });
  const policies = policiesWith(() => limits);
  const bounded = new MemoryLimiter(policies, clock, { maxIdsPerKey: 2 });
  await bounded.pause('key', 1000);
  const places = [ID, OTHER_ID, THIRD_ID].map((requestId) =>
    startCheck(bounded, { key: 'key', canWait: true, requestId, keepMillis: KEEP }),
  );
  for (const place of places) place.disconnect();
  await clock.advance(1000);
  expect(await bounded.inspect('key')).toMatchObject({ held: 2, waiting: 1 });
  await bounded.check({ key: 'key', canWait: false, requestId: ID });
  expect(await bounded.inspect('key')).toMatchObject({ held: 1, waiting: 1 });
  await bounded.release('key', ID);
  expect(await bounded.inspect('key')).toMatchObject({ held: 2, waiting: 0 });
  await bounded.close();
});

test('a check takes a kept place over although all places are taken', async () => {
  keep().disconnect();
  const later = keep();
  await clock.advance(1000);
  expect(await later.decision).toMatchObject({ outcome: 'approved', requestId: ID });
});

test('an approval that lapses is counted, also if no call of its key comes', async () => {
  keep().disconnect();
  await clock.advance(1000 + KEEP - 1);
  expect(unclaimed).toBe(0);
  // A sweep finds it within a second.
  await clock.advance(1001);
  expect(unclaimed).toBe(1);
  await clock.advance(10_000);
  expect(await limiter.inspect('key')).toBeUndefined();
  expect(unclaimed).toBe(1);
});

describe('when its process is about to stop', () => {
  test('the places of callers that are gone end, and the others wait on', async () => {
    limiter = limiterFor(9);
    await limiter.check({ key: 'key', canWait: false });
    keep().disconnect();
    const there = keep({ requestId: OTHER_ID });
    limiter.handOver();
    expect(limiter.waiting).toBe(1);
    await clock.advance(1000);
    expect(await there.decision).toMatchObject({ outcome: 'approved', requestId: OTHER_ID });
  });

  test('the places of callers that disconnect later end at once', () => {
    const kept = keep();
    limiter.handOver();
    kept.disconnect();
    expect(limiter.waiting).toBe(0);
  });

  test('no place is kept after a check was told that it waits', async () => {
    limiter.handOver();
    expect(await keep({ answerMillis: 0 }).decision).toMatchObject({ outcome: 'waiting' });
    expect(limiter.waiting).toBe(0);
  });
});

test('a position is exact up to 1000, and at least as great behind that', () => {
  const queue = new FifoQueue(0);
  const idOf = (number: number): string => `id ${number}`;
  for (let number = 1; number <= 2000; number += 1) {
    queue.join(0, { requestId: idOf(number), keepMillis: undefined });
  }
  for (let number = 1; number <= 500; number += 1) queue.remove(idOf(2 * number));
  expect([1, 999, 1499].map((number) => queue.positionOf(idOf(number)))).toEqual([1, 500, 999]);
  for (let number = 1700; number < 1800; number += 1) queue.remove(idOf(number));
  expect(queue.positionOf(idOf(1500))).toBe(1000);
  // The 100 that have left count.
  expect(queue.positionOf(idOf(2000))).toBe(1500);
});
