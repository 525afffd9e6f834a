import { setImmediate as nextTick } from 'node:timers/promises';

import { CallerPresence } from '../../../src/limiter/request.js';
import type { Decision, CheckRequest } from '../../../src/limiter/limiter.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { quotaOf } from '../../support/quota.js';
import { ManualClock } from '../../support/manual-clock.js';
import { ApprovalBatches } from '../../../src/limiter/approval-batches.js';
import { eventLoop } from '../../../src/common/ticks.js';
import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import { withinBudget, WaitingBudget } from '../../../src/limiter/waiting-budget.js';

const WITHDRAWN: Decision = { outcome: 'withdrawn' };

const APPROVED: Decision = { outcome: 'approved', requestId: 'a' };
const DENIED: Decision = { outcome: 'denied', reason: 'queue_full', quota: quotaOf(5) };

/** Every way in which a waiter can end, and how its promise then settles. */
const ENDS: [string, (waiter: Waiter, caller: CallerPresence) => void, unknown][] = [
  ['an approval', (waiter) => waiter.approve(), APPROVED],
  [
    'an approval from the queue',
    (waiter) => waiter.approveFromQueue(),
    { ...APPROVED, waited: true },
  ],
  ['a denial', (waiter) => waiter.decide(DENIED), DENIED],
  ['a failure', (waiter) => waiter.fail(new Error('lost')), new Error('lost')],
  ["the client's disconnect", (_waiter, caller) => caller.disconnect(), WITHDRAWN],
];

function callerThatIsGone(): CallerPresence {
  const caller = new CallerPresence();
  caller.disconnect();
  return caller;
}

describe.each(ENDS)('%s', (first, end, outcome) => {
  let waiter: Waiter;
  let caller: CallerPresence;
  let settled: Promise<unknown>;
  let withdrawals: number;
  beforeEach(() => {
    waiter = new Waiter('a');
    settled = waiter.decision.catch((error: unknown) => error);
    caller = new CallerPresence();
    withdrawals = 0;
    waiter.withdrawOnDisconnect(caller, () => (withdrawals += 1));
  });

  test('decides the request', async () => {
    end(waiter, caller);
    expect(waiter.decided).toBe(true);
    expect(await settled).toEqual(outcome);
    expect(withdrawals).toBe(outcome === WITHDRAWN ? 1 : 0);
  });

  test('no longer listens to the client', () => {
    expect(caller.onDisconnect).toBeDefined();
    end(waiter, caller);
    if (outcome !== WITHDRAWN) caller.disconnect();
    expect(caller.onDisconnect).toBeUndefined();
    expect(withdrawals).toBe(outcome === WITHDRAWN ? 1 : 0);
  });

  test.each(ENDS)('holds against %s that comes later', async (_later, endAgain) => {
    end(waiter, caller);
    endAgain(waiter, caller);
    expect(await settled).toEqual(outcome);
    expect(withdrawals).toBe(first === "the client's disconnect" ? 1 : 0);
  });

  test('makes a later approval or denial return false', () => {
    end(waiter, caller);
    expect(waiter.approve()).toBe(false);
    expect(waiter.approveFromQueue()).toBe(false);
    expect(waiter.decide(DENIED)).toBe(false);
  });
});

test('a client that has disconnected already withdraws at once', async () => {
  const waiter = new Waiter('a');
  const caller = callerThatIsGone();
  let withdrawals = 0;
  waiter.withdrawOnDisconnect(caller, () => (withdrawals += 1));
  expect(withdrawals).toBe(1);
  expect(await waiter.decision).toEqual(WITHDRAWN);
  expect(caller.onDisconnect).toBeUndefined();
});

test('a client that had disconnected before the request was decided changes nothing', async () => {
  const waiter = new Waiter('a');
  waiter.approve();
  let withdrawals = 0;
  waiter.withdrawOnDisconnect(callerThatIsGone(), () => (withdrawals += 1));
  expect(withdrawals).toBe(0);
  expect(await waiter.decision).toEqual(APPROVED);
});

describe('approvals in batches', () => {
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
    test('when the last batch was notified', async () => {
      approve(2 * BATCH + 1);
      await approvals.allNotified();
      expect(notified()).toHaveLength(2 * BATCH + 1);
    });
  });
});

describe('the places of requests', () => {
  const KEEPING: CheckRequest = { key: 'key', requestId: 'id', canWait: true, keepMillis: 1000 };
  const WAITING: Decision = { outcome: 'waiting', requestId: 'id', place: undefined };

  let places: WaitingBudget;
  beforeEach(() => {
    places = new WaitingBudget();
  });

  /** Decides a check in a place, and returns what tells that its place has ended. */
  async function decide(request: CheckRequest, decision: Decision): Promise<() => void> {
    let onPlaceEnded: (() => void) | undefined;
    await withinBudget(places.take(9, request)!, request, (asked) => {
      onPlaceEnded = asked.onPlaceEnded;
      return Promise.resolve(decision);
    });
    return () => onPlaceEnded?.();
  }

  test('the checks of one request share a place, also if no other is left', () => {
    const first = places.take(1, KEEPING);
    const second = places.take(1, KEEPING);
    expect(places.take(1, { ...KEEPING, key: 'other' })).toBeUndefined();
    first?.();
    first?.();
    expect(places.taken).toBe(1);
    second?.();
    expect(places.taken).toBe(0);
  });

  test('a check that fails gives its place back', async () => {
    const failed = withinBudget(places.take(1, KEEPING)!, KEEPING, () =>
      Promise.reject(new Error('lost')),
    );
    await expect(failed).rejects.toThrow('lost');
    expect(places.taken).toBe(0);
  });

  test('a request that waits on keeps its place until that has ended', async () => {
    const end = await decide(KEEPING, WAITING);
    expect(places.taken).toBe(1);
    end();
    end();
    expect(places.taken).toBe(0);
  });

  test('a place that has ended before the decision is given back', async () => {
    const place = places.take(1, KEEPING)!;
    await withinBudget(place, KEEPING, (asked) => {
      asked.onPlaceEnded?.();
      return Promise.resolve(WAITING);
    });
    expect(places.taken).toBe(0);
  });

  test('the end of a place is told to all who count it', async () => {
    const outer = new WaitingBudget();
    let end: (() => void) | undefined;
    await withinBudget(outer.take(1, KEEPING)!, KEEPING, (request) =>
      withinBudget(places.take(1, request)!, request, (asked) => {
        end = asked.onPlaceEnded;
        return Promise.resolve(WAITING);
      }),
    );
    end?.();
    expect([outer.taken, places.taken]).toEqual([0, 0]);
  });
});
