import { setImmediate as nextTick } from 'node:timers/promises';

import { ApprovalBatches } from '../../../src/limiter/approval-batches.js';
import { CallerPresence } from '../../../src/limiter/caller-presence.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { eventLoop } from '../../../src/common/ticks.js';
import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import { ManualClock } from '../../support/manual-clock.js';

const BATCH = 32;

let approvals: ApprovalBatches;
let clock: ManualClock;
let waiters: Waiter[];
let released: string[];
beforeEach(() => {
  clock = new ManualClock(0);
  approvals = new ApprovalBatches(eventLoop, clock);
  waiters = [];
  released = [];
});

function approve(count: number): Waiter[] {
  const added = Array.from({ length: count }, (_, i) => new Waiter(String(waiters.length + i)));
  waiters.push(...added);
  for (const waiter of added) {
    approvals.approve(waiter, () => released.push(waiter.requestId));
  }
  return added;
}

const notified = (): string[] =>
  waiters.filter(({ decided }) => decided).map(({ requestId }) => requestId);
const firstIds = (count: number): string[] => waiters.slice(0, count).map((w) => w.requestId);

test('a few waiters are notified at once, and their decisions say that they waited', async () => {
  approve(3);
  expect(notified()).toEqual(['0', '1', '2']);
  expect(await waiters[0]!.decision).toEqual({
    outcome: 'approved',
    requestId: '0',
    waited: true,
  });
});

test('many waiters are notified in their order, in one batch in each tick of the event loop', async () => {
  approve(2 * BATCH + 1);
  expect(notified()).toEqual(firstIds(BATCH));
  await nextTick();
  expect(notified()).toEqual(firstIds(2 * BATCH));
  await nextTick();
  expect(notified()).toEqual(firstIds(2 * BATCH + 1));
});

test('waiters approved later in the tick come after the waiters that are left', async () => {
  approve(BATCH + 1);
  approve(1);
  expect(notified()).toEqual(firstIds(BATCH));
  await nextTick();
  expect(notified()).toEqual(firstIds(BATCH + 2));
});

test('later ticks have batches of their own', async () => {
  approve(BATCH);
  await nextTick();
  await nextTick();
  approve(BATCH);
  expect(notified()).toEqual(firstIds(2 * BATCH));
});

test('an approval whose caller disconnects before it is notified is released', async () => {
  approve(BATCH);
  const [left] = approve(1);
  const caller = new CallerPresence();
  left!.withdrawOnDisconnect(caller, () => undefined);
  caller.disconnect();
  expect(released).toEqual([]);
  await nextTick();
  expect(released).toEqual([left!.requestId]);
});

test('a hold that lapses before its waiter is notified is an error, and released', async () => {
  approve(BATCH);
  const [late, inTime] = [new Waiter('late'), new Waiter('in time')];
  approvals.approve(late, () => released.push('late'), undefined, 1000);
  approvals.approve(inTime, () => released.push('in time'), undefined, 1001);
  await clock.advance(1000);
  await approvals.allNotified();
  await expect(late.decision).rejects.toBeInstanceOf(StoreUnavailableError);
  expect(await inTime.decision).toMatchObject({ outcome: 'approved' });
  expect(released).toEqual(['late']);
});

describe('all are notified', () => {
  test('at once if no waiter is left', async () => {
    await approvals.allNotified();
    approve(BATCH);
    await approvals.allNotified();
    expect(notified()).toHaveLength(BATCH);
  });

  test('when the last batch was notified', async () => {
    approve(2 * BATCH + 1);
    await approvals.allNotified();
    expect(notified()).toHaveLength(2 * BATCH + 1);
  });
});
