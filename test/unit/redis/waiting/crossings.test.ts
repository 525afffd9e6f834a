import type { SettleReply } from '../../../../src/redis/scripts/settle-codec.js';
import { WAKE_GRACE_MILLIS } from '../../../../src/redis/waiting/wake-numbers.js';
import {
  GRACE_MILLIS,
  LEASE_MILLIS,
  QueueHarness,
  WINDOW_MILLIS,
} from '../../../support/waiting/queue-harness.js';

import { quiet } from '../../../support/waiting/scripted-store.js';

let h: QueueHarness;
beforeEach(async () => {
  h = new QueueHarness();
  await h.waitAndListen({ a: 10, b: 20 });
});

describe('a reply and a wake', () => {
  test('an approval that overtakes the ticket holds, and the ticket changes nothing', async () => {
    h.ask('c');
    h.wake({ granted: ['c'] });
    h.ticketed('c', 30);
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

  test('a ticket that comes after a missed wake is asked about', async () => {
    h.ask('c');
    h.loseWake();
    h.wake({ granted: ['a', 'b'] });
    expect(h.queue.mode).toBe('listening');
    h.ticketed('c', 30);
    expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['c']]);
    await h.store.last.answer({ granted: ['c'] });
    expect(await h.outcome('c')).toBe('approved');
  });

  test('an approval by wake while a call asks about its waiter is given once', async () => {
    h.queue.onMemoryLost();
    h.wake({ granted: ['a'] });
    expect(h.store.last.ids).toEqual(['a', 'b']);
    await h.store.last.answer({ granted: ['a'], waiting: 1 });
    expect(await h.outcome('a')).toBe('approved');
    expect([h.size, h.withdrawn]).toEqual([1, []]);
  });
});

const SOON = { millisToRoom: 300, waiting: 2 };

describe('a wake that announces room soon, as after a recovery,', () => {
  const HOUR_MILLIS = 3_600_000;

  async function expectSettleWhenThereIsRoom(): Promise<void> {
    const calls = h.store.calls.length;
    await h.advance(299);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls]);
    await h.advance(1);
    expect(h.store.calls).toHaveLength(calls + 1);
  }

  test('is newer than the reply of a settle that it overtakes', async () => {
    h.queue.onMemoryLost();
    h.wake(SOON);
    await h.store.last.answer({ wakeNumber: 0, millisToRoom: HOUR_MILLIS, waiting: 2 });
    await expectSettleWhenThereIsRoom();
  });

  test('is newer than the ticket of a check that it overtakes', async () => {
    h.ask('c');
    h.wake(SOON);
    h.ticketed('c', 30, HOUR_MILLIS, { wakeNumber: 0 });
    await expectSettleWhenThereIsRoom();
  });

  test('is as new as the reply of a settle that has published it', async () => {
    h.queue.onMemoryLost();
    h.wake(SOON);
    await h.store.last.answer(SOON);
    await expectSettleWhenThereIsRoom();
  });

  test('leads to another call if it has no number, and may have overtaken the reply of a settle', async () => {
    h.queue.onMemoryLost();
    await h.advance(1);
    h.wake({ ...SOON, number: undefined });
    await h.store.last.answer({ millisToRoom: HOUR_MILLIS, waiting: 2 });
    expect([h.queue.mode, h.store.calls.length]).toEqual(['settling', 3]);
    await h.advance(1);
    await h.store.last.answer(SOON);
    await expectSettleWhenThereIsRoom();
  });

  test('leads to another call if it has no number, and may have overtaken a ticket', async () => {
    h.ask('c');
    await h.advance(1);
    h.wake({ ...SOON, number: undefined });
    h.ticketed('c', 30, HOUR_MILLIS);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['settling', 2]);
  });
});

test.each([
  ['with a number', 1],
  ['without one', undefined],
])(
  'a reply that announces room soon is not forgotten for an older wake %s',
  async (_what, number) => {
    h.queue.onMemoryLost();
    await h.store.last.answer({ ...SOON, wakeNumber: number ?? 0 });
    h.wake({ number, millisToRoom: 3_600_000, waiting: 2 });
    const calls = h.store.calls.length;
    await h.advance(300);
    expect(h.store.calls).toHaveLength(calls + 1);
  },
);

describe('the number of a wake', () => {
  const settleWith = async (reply: Partial<SettleReply>): Promise<void> => {
    h.queue.limitsChanged();
    await h.store.last.answer({ waiting: 2, ...reply });
  };

  test('shows at the next reply that one was lost, when it has not come in time', async () => {
    h.loseWake();
    await settleWith({});
    const calls = h.store.calls.length;
    await h.advance(WAKE_GRACE_MILLIS - 1);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls]);
    await h.advance(1);
    expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b']]);
  });

  test('shows at the next ticket that one was lost', async () => {
    h.loseWake();
    h.wait('c', 30);
    await h.advance(WAKE_GRACE_MILLIS);
    expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b', 'c']]);
  });

  test.each<[what: string, overtake: () => Promise<void>]>([
    ['the reply of a settle', () => settleWith({ wakeNumber: 1 })],
    [
      'a ticket',
      () => {
        h.ask('c');
        h.ticketed('c', 30, WINDOW_MILLIS, { wakeNumber: 1 });
        return Promise.resolve();
      },
    ],
  ])('that comes after %s costs no call', async (_what, overtake) => {
    await overtake();
    const calls = h.store.calls.length;
    await h.advance(WAKE_GRACE_MILLIS - 1);
    h.wake({ number: 1, granted: ['a'], waiting: 1 });
    expect(await h.outcome('a')).toBe('approved');
    await h.advance(WAKE_GRACE_MILLIS);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls]);
  });

  test('that is lower in a reply shows that Redis has lost the key, unless a wake has overtaken the reply', async () => {
    h.wake({ waiting: 2 });
    await h.advance(1);
    h.queue.limitsChanged();
    h.wake({ waiting: 2 });
    await h.store.last.answer({ waiting: 2, wakeNumber: 1 });
    expect(h.queue.mode).toBe('listening');
    await h.advance(1);
    await settleWith({ wakeNumber: 1 });
    expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b']]);
  });

  test('is awaited no longer when nobody waits here', async () => {
    h.loseWake();
    await settleWith({});
    h.disconnect('a');
    h.disconnect('b');
    await quiet();
    expect(h.clock.isAwaited).toBe(false);
  });
});

describe('a wake and a disconnect', () => {
  test('an approval before the disconnect holds', async () => {
    h.wake({ granted: ['a'] });
    h.disconnect('a');
    expect(await h.outcome('a')).toBe('approved');
    expect(h.withdrawn).toEqual([]);
  });

  test('an approval after the disconnect ends with the withdrawal', async () => {
    h.disconnect('a');
    h.wake({ granted: ['a'] });
    expect(await h.outcome('a')).toBe('withdrawn');
    expect(h.withdrawn).toEqual([['a']]);
  });
});

test('the first check of a queue leaves no subscription if its client disconnects before the reply', () => {
  const alone = new QueueHarness();
  alone.ask('c');
  alone.disconnect('c');
  alone.ticketed('c', 30, 500);
  expect([alone.withdrawn, alone.over, alone.messages.channels.size]).toEqual([
    [['c']],
    'ending',
    0,
  ]);
});

describe('a lost subscription and the end of a window', () => {
  test('the timer ends a window whose wake is lost, and finds the approved waiters', async () => {
    h.mutex.isTaken = true;
    h.mutex.isAcquired = false;
    await h.advance(WINDOW_MILLIS);
    h.loseWake();
    await h.advance(GRACE_MILLIS);
    await h.store.last.answer({ waiting: 1 });
    await h.advance(50);
    expect(h.store.last.ids).toEqual(['a', 'b']);
    await h.store.last.answer({ granted: ['a'], waiting: 1 });
    expect(await h.outcome('a')).toBe('approved');
  });

  test('a waiter whose ticket comes after the subscription was made again is also asked about', async () => {
    h.ask('c');
    h.confirmSubscription();
    await h.store.last.answer({ waiting: 2 });
    expect(h.queue.mode).toBe('listening');
    h.ticketed('c', 30);
    expect(h.store.last.ids).toEqual(['c']);
  });
});

test('after an outage longer than the lease all waiters are asked about once', async () => {
  await h.advance(WINDOW_MILLIS);
  while (h.clock.now() < LEASE_MILLIS) {
    await h.store.last.fail();
    await h.advance(250);
  }
  const calls = h.store.calls.length;
  expect(h.store.last.ids).toEqual(['a', 'b']);
  await h.store.last.answer({ waiting: 2 });
  expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls]);
});

test('an approval after the end of the replica ends with the withdrawal', async () => {
  h.ask('c');
  h.queue.turnAway();
  h.wake({ granted: ['a', 'c'] });
  await quiet();
  expect([h.withdrawn, h.over]).toEqual([[['a', 'b'], ['c']], 'ended']);
});
