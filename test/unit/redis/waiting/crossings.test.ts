import {
  GRACE_MILLIS,
  LEASE_MILLIS,
  QueueHarness,
  WINDOW_MILLIS,
  LIMITS,
} from '../../../support/waiting/queue-harness.js';
import { quiet } from '../../../support/waiting/scripted-store.js';

/** The number of waiters that are notified in one tick. */
const BATCH = 32;
const MAX_ASKED_PER_CALL = 500;

let h: QueueHarness;
beforeEach(async () => {
  h = new QueueHarness();
  await h.waitAndListen({ a: 10, b: 20 });
});

describe('a reply and a wake', () => {
  test('an approval that overtakes the ticket holds, and the ticket changes nothing', async () => {
    h.ask('c');
    h.wake({ granted: ['c'], waitingFrom: 31 });
    h.queue.ticketed('c', 30, 500, LIMITS);
    expect(await h.outcome('c')).toBe('approved');
    expect([h.size, h.withdrawn]).toEqual([2, []]);
    h.queue.onStoreAvailable();
    expect(h.store.last.ids).not.toContain('c');
  });

  test('an approval that overtakes an approval is given once', async () => {
    h.ask('c');
    h.wake({ granted: ['c'] });
    expect(h.queue.answered('c')).toBe(false);
    expect(await h.outcome('c')).toBe('approved');
  });

  test('a ticket that a wake has passed over is asked about', async () => {
    h.ask('c');
    h.wake({ waitingFrom: 31, granted: ['a', 'b'] });
    expect(h.queue.mode).toBe('listening');
    h.queue.ticketed('c', 30, 500, LIMITS);
    expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['c']]);
    await h.store.last.answer({ granted: ['c'], waitingFrom: 31 });
    expect(await h.outcome('c')).toBe('approved');
  });

  test('the first call finds an approval whose wake was sent before the subscription', async () => {
    const early = new QueueHarness();
    early.wait('a', 10);
    early.confirmSubscription();
    await early.store.last.answer({ waitingFrom: 11 });
    expect(early.store.last.ids).toEqual(['a']);
    await early.store.last.answer({ waitingFrom: 11, granted: ['a'] });
    expect([await early.outcome('a'), early.over]).toEqual(['approved', 'ended']);
  });

  test('an approval by wake while a call asks about its waiter is given once', async () => {
    h.queue.onMemoryLost();
    h.wake({ granted: ['a'], waitingFrom: 20 });
    expect(h.store.last.ids).toEqual(['a', 'b']);
    await h.store.last.answer({ granted: ['a'], waitingFrom: 20, waiting: 1 });
    expect(await h.outcome('a')).toBe('approved');
    expect([h.size, h.withdrawn]).toEqual([1, []]);
  });

  test('a wake that says there is room while a call is under way does not lead to a second call', async () => {
    await h.advance(WINDOW_MILLIS);
    const calls = h.store.calls.length;
    h.wake({ millisToRoom: 0, granted: ['a'], waitingFrom: 20, waiting: 1 });
    await h.advance(0);
    expect(h.store.calls).toHaveLength(calls);
    await h.store.last.answer({ millisToRoom: 0, granted: ['a'], waitingFrom: 20, waiting: 1 });
    expect(h.store.calls).toHaveLength(calls + 1);
  });
});

describe('a wake that announces room soon, as after a hold,', () => {
  test('leads to another call if it overtakes the reply of an earlier settle', async () => {
    h.queue.onMemoryLost();
    h.wake({ millisToRoom: 300, waitingFrom: 10, waiting: 2 });
    await h.store.last.answer({ millisToRoom: 3_600_000, waitingFrom: 10, waiting: 2 });
    expect([h.queue.mode, h.store.calls.length]).toEqual(['settling', 3]);
    await h.store.last.answer({ millisToRoom: 300, waitingFrom: 10, waiting: 2 });
    expect(h.queue.mode).toBe('listening');
    await h.advance(300);
    expect(h.store.calls).toHaveLength(4);
  });

  test('leads to another call if it overtakes the ticket of an earlier check', () => {
    h.ask('c');
    h.wake({ millisToRoom: 300, waitingFrom: 10, waiting: 3 });
    h.queue.ticketed('c', 30, 3_600_000, LIMITS);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['settling', 2]);
  });

  test('leads to no other call if it overtakes nothing and the next window is known', async () => {
    await h.advance(WINDOW_MILLIS);
    const calls = h.store.calls.length;
    const next = { millisToRoom: WINDOW_MILLIS, granted: ['a'], waitingFrom: 20, waiting: 1 };
    h.wake(next);
    await h.store.last.answer(next);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls]);
  });
});

describe('a wake and a disconnect', () => {
  test('an approval before the disconnect holds', async () => {
    h.wake({ granted: ['a'], waitingFrom: 20 });
    h.disconnect('a');
    expect(await h.outcome('a')).toBe('approved');
    expect(h.withdrawn).toEqual([]);
  });

  test('an approval after the disconnect ends with the withdrawal', async () => {
    h.disconnect('a');
    h.wake({ granted: ['a'], waitingFrom: 20 });
    expect(await h.outcome('a')).toBe('withdrawn');
    expect(h.withdrawn).toEqual([['a']]);
  });

  test('an approval is released if its caller disconnects before it is notified', async () => {
    const many = Array.from({ length: BATCH + 1 }, (_, i) => `w${i}`);
    for (const [i, requestId] of many.entries()) h.wait(requestId, 100 + i);
    const last = many.at(-1)!;
    h.wake({ granted: many, waitingFrom: 10, waiting: 2 });
    h.disconnect(last);
    expect(h.withdrawn).toEqual([]);
    expect(await h.outcome(last)).toBe('withdrawn');
    expect(h.withdrawn).toEqual([[last]]);
    expect(await h.outcome(many[BATCH - 1]!)).toBe('approved');
  });

  test('an approval that overtakes the ticket is released if its caller has disconnected', () => {
    h.ask('c');
    h.disconnect('c');
    h.wake({ granted: ['c'] });
    expect(h.withdrawn).toEqual([['c']]);
    h.queue.ticketed('c', 30, 500, LIMITS);
    expect([h.withdrawn, h.size]).toEqual([[['c']], 2]);
  });
});

describe('a disconnect and a reply', () => {
  test('a check without a ticket is withdrawn when its ticket comes', async () => {
    h.ask('c');
    h.disconnect('c');
    expect([h.withdrawn, h.size]).toEqual([[], 3]);
    h.queue.ticketed('c', 30, 500, LIMITS);
    expect([h.withdrawn, h.size]).toEqual([[['c']], 2]);
    expect(await h.outcome('c')).toBe('withdrawn');
  });

  test('the first check of a queue leaves no subscription', () => {
    const alone = new QueueHarness();
    alone.ask('c');
    alone.disconnect('c');
    alone.queue.ticketed('c', 30, 500, LIMITS);
    expect([alone.withdrawn, alone.over, alone.messages.channels.size]).toEqual([
      [['c']],
      'ending',
      0,
    ]);
  });

  test('a doubted waiter is withdrawn after the call, which may put it back', async () => {
    h.queue.onMemoryLost();
    h.disconnect('a');
    expect([h.store.last.ids, h.withdrawn]).toEqual([['a', 'b'], []]);
    await h.store.last.answer({ waiting: 2, waitingFrom: 10 });
    expect(h.withdrawn).toEqual([['a']]);
  });

  test('a doubted waiter that was approved is withdrawn after the call', async () => {
    h.queue.onMemoryLost();
    h.disconnect('a');
    await h.store.last.answer({ granted: ['a'], waiting: 1, waitingFrom: 20 });
    expect([h.withdrawn, await h.outcome('a')]).toEqual([[['a']], 'withdrawn']);
  });
});

describe('a lost subscription and the end of a window', () => {
  test('the timer ends a window whose wake is lost, and finds the approved waiters', async () => {
    h.mutex.isTaken = true;
    h.mutex.isAcquired = false;
    await h.advance(WINDOW_MILLIS + GRACE_MILLIS);
    await h.store.last.answer({ waitingFrom: 20, waiting: 1 });
    expect(h.store.last.ids).toEqual(['a']);
    await h.store.last.answer({ granted: ['a'], waitingFrom: 20, waiting: 1 });
    expect(await h.outcome('a')).toBe('approved');
  });

  test('a subscription made again during the settle makes the next call ask about all waiters', async () => {
    await h.advance(WINDOW_MILLIS);
    expect(h.store.last.ids).toEqual([]);
    h.confirmSubscription();
    expect(h.queue.mode).toBe('resettling');
    await h.store.last.answer({ waiting: 2, waitingFrom: 10 });
    expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b']]);
  });

  test('a waiter whose ticket comes after the subscription was made again is also asked about', async () => {
    h.ask('c');
    h.confirmSubscription();
    await h.store.last.answer({ waiting: 2 });
    expect(h.queue.mode).toBe('listening');
    h.queue.ticketed('c', 30, 500, LIMITS);
    expect(h.store.last.ids).toEqual(['c']);
  });
});

describe('the end of the lease and the return of the store', () => {
  test('after an outage longer than the lease all waiters are asked about once', async () => {
    await h.advance(WINDOW_MILLIS);
    while (h.clock.now() < LEASE_MILLIS) {
      await h.store.last.fail();
      await h.advance(250);
    }
    const calls = h.store.calls.length;
    expect(h.store.last.ids).toEqual(['a', 'b']);
    await h.store.last.answer({ waiting: 2, waitingFrom: 10 });
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls]);
  });

  test('after a call longer than the lease all waiters are asked about', async () => {
    await h.advance(WINDOW_MILLIS);
    await h.clock.advance(LEASE_MILLIS);
    await h.store.last.answer({ waiting: 2, waitingFrom: 10 });
    expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b']]);
  });

  test('a return of the store during a call makes the next call ask about all waiters again', async () => {
    h.queue.onStoreAvailable();
    h.queue.onStoreAvailable();
    expect(h.queue.mode).toBe('resettling');
    await h.store.last.answer({ waiting: 2, waitingFrom: 10 });
    expect(h.store.calls.slice(1).map(({ ids }) => ids)).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  test('many waiters are put back in the order of their tickets, in whatever order the tickets came', async () => {
    for (let i = 0; i < MAX_ASKED_PER_CALL; i += 1) h.ask(`w${i}`);
    for (let i = MAX_ASKED_PER_CALL - 1; i >= 0; i -= 1)
      h.queue.ticketed(`w${i}`, 100 + i, 500, LIMITS);
    h.queue.onMemoryLost();
    await h.store.last.answer({ waiting: 500, waitingFrom: 10 });
    await h.store.last.answer({ waiting: 502, waitingFrom: 10 });
    const [first, second] = h.store.calls.slice(1);
    expect([first!.ids.length, second!.ids]).toEqual([
      MAX_ASKED_PER_CALL,
      [`w${MAX_ASKED_PER_CALL - 2}`, `w${MAX_ASKED_PER_CALL - 1}`],
    ]);
    expect(first!.ids.slice(0, 3)).toEqual(['a', 'b', 'w0']);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', 3]);
  });

  test('an approved waiter is never asked about again', () => {
    h.wake({ granted: ['a'], waitingFrom: 20 });
    h.queue.onMemoryLost();
    expect(h.store.last.ids).toEqual(['b']);
  });
});

describe('the end of the replica', () => {
  test('waiters fail and are withdrawn', async () => {
    h.queue.turnAway();
    expect([await h.outcome('a'), await h.outcome('b')]).toEqual([
      'shutting_down',
      'shutting_down',
    ]);
    expect([h.withdrawn, h.over, h.size]).toEqual([[['a', 'b']], 'ended', 0]);
  });

  test('a check without a ticket fails, and is withdrawn when its ticket comes', async () => {
    h.ask('c');
    h.queue.turnAway();
    expect([await h.outcome('c'), h.over, h.size]).toEqual(['shutting_down', 'no', 1]);
    h.queue.ticketed('c', 30, 500, LIMITS);
    await quiet();
    expect([h.withdrawn, h.over, h.size]).toEqual([[['a', 'b'], ['c']], 'ended', 0]);
  });

  test('a later approval ends with the withdrawal', async () => {
    h.ask('c');
    h.queue.turnAway();
    h.wake({ granted: ['a', 'c'], waitingFrom: 20 });
    await quiet();
    expect([h.withdrawn, h.over]).toEqual([[['a', 'b'], ['c']], 'ended']);
  });

  test('withdrawals come after a call that is under way', async () => {
    await h.advance(WINDOW_MILLIS);
    h.queue.turnAway();
    expect([h.withdrawn, h.over]).toEqual([[], 'ending']);
    await h.store.last.fail();
    expect([h.withdrawn, h.over]).toEqual([[['a', 'b']], 'ended']);
  });
});
