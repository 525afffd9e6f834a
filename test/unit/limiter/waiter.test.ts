import { CallerPresence } from '../../../src/limiter/caller-presence.js';
import type { Decision } from '../../../src/limiter/limiter.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { quotaOf } from '../../support/quota.js';

const APPROVED: Decision = { outcome: 'approved', requestId: 'a' };
const DENIED: Decision = { outcome: 'denied', reason: 'queue_full', quota: quotaOf(5) };
const WITHDRAWN: Decision = { outcome: 'withdrawn' };

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

test('a waiter is undecided at first', () => {
  expect(new Waiter('a').decided).toBe(false);
});

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

test('a first approval or denial returns true', () => {
  expect(new Waiter('a').approve()).toBe(true);
  expect(new Waiter('a').approveFromQueue()).toBe(true);
  expect(new Waiter('a').decide(DENIED)).toBe(true);
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

test('a waiter without a client can be decided', async () => {
  const waiter = new Waiter('a');
  waiter.withdrawOnDisconnect(undefined, () => {
    throw new Error('called without a client that could disconnect');
  });
  waiter.approve();
  expect(await waiter.decision).toEqual(APPROVED);
});
