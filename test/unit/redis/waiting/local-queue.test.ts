import {
  GRACE_MILLIS,
  LEASE_MILLIS,
  LOOK_AGAIN_MILLIS,
  QueueHarness,
  WINDOW_MILLIS,
  LIMITS,
} from '../../../support/waiting/queue-harness.js';
import { Waiter } from '../../../../src/limiter/waiter.js';
import type { Wake } from '../../../../src/redis/waiting/wake-channel.js';
import { WAKE_GRACE_MILLIS } from '../../../../src/redis/shared/losses.js';
import { quiet } from '../../../support/waiting/scripted-store.js';

describe('a queue of a replica', () => {
  let h: QueueHarness;
  beforeEach(() => {
    h = new QueueHarness();
  });

  const channels = (): string[] => [...h.messages.channels];
  const say = (message: object): void => {
    h.messages.say(h.names.wakeChannel, message);
  };

  /** Brings a new queue with the waiters `a` and `b` into a mode. */
  const REACH = {
    listening: () => h.waitAndListen({ a: 10, b: 20 }),
    settling: async () => {
      await REACH.listening();
      await h.advance(WINDOW_MILLIS + GRACE_MILLIS);
    },
    inLine: async () => {
      await REACH.settling();
      await h.store.last.fail();
    },
    over: async () => {
      await REACH.settling();
      h.disconnect('a');
      h.disconnect('b');
    },
  };

  /** The reply for a key that Redis does not know. */
  const UNKNOWN_KEY = { millisToRoom: undefined, wakeNumber: 0, places: 0 };

  const WAKE: Wake = {
    at: 0,
    number: 1,
    millisToRoom: 500,
    waiting: 1,
    limits: LIMITS,
    used: 1,
    granted: [],
    ended: [],
  };

  describe('the answer to a settle call', () => {
    test('that there is room now leads to another call at once, even for a follower', async () => {
      await REACH.settling();
      h.mutex.isAcquired = false;
      await h.store.last.answer({ millisToRoom: 0, waiting: 500, granted: ['a'] });
      expect([h.queue.mode, h.store.calls.length]).toEqual(['settling', 3]);
      await h.store.last.answer({ waiting: 1 });
      expect(h.queue.mode).toBe('listening');
      expect(await h.outcome('a')).toBe('approved');
    });

    test('that Redis has fewer places leads to another call that asks about all waiters, once', async () => {
      await REACH.settling();
      await h.store.last.answer({ waiting: 1, places: 1 });
      expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b']]);
      await h.store.last.answer({ waiting: 2, places: 2 });
      expect(h.queue.mode).toBe('listening');
    });

    test('that approves a waiter explains one place less', async () => {
      await REACH.settling();
      await h.store.last.answer({ waiting: 1, places: 1, granted: ['a'] });
      expect(h.queue.mode).toBe('listening');
    });

    test('that the key is unknown leads to another call about all waiters, with the window', async () => {
      await h.waitAndListen({ a: 10, b: 20 });
      await h.advance(400);
      h.confirmSubscription();
      await h.store.last.answer({ millisToRoom: 600 });
      await h.advance(100);
      h.wake({ millisToRoom: 500 });
      h.queue.onMemoryLost();
      await h.store.last.answer(UNKNOWN_KEY);
      expect(h.store.last).toMatchObject({
        ids: ['a', 'b'],
        known: { millisLeft: 500, limits: LIMITS },
      });
    });

    test('that the key is unknown leads to no more calls if no waiter has a ticket', async () => {
      await h.waitAndListen({ a: 10 });
      h.ask('b');
      h.wake({ granted: ['a'] });
      await h.advance(WINDOW_MILLIS);
      const calls = h.store.calls.length;
      await h.store.last.answer(UNKNOWN_KEY);
      await h.advance(WINDOW_MILLIS - 1);
      expect(h.store.calls).toHaveLength(calls);
      await h.advance(1);
      expect(h.store.calls).toHaveLength(calls + 1);
    });
  });

  describe('the failure of a settle call', () => {
    test('leads to another call about all waiters after its back-off, whatever the election does', async () => {
      await REACH.inLine();
      say({ leaderResigned: true });
      await quiet();
      const calls = h.store.calls.length;
      await h.advance(49);
      expect(h.store.calls).toHaveLength(calls);
      await h.advance(1);
      expect(h.store.calls).toHaveLength(calls + 1);
      expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b']]);
    });
  });

  describe('a queue without tickets', () => {
    test('neither listens nor sets a timer', async () => {
      h.ask('a');
      await h.advance(100_000);
      expect([channels(), h.store.calls, h.mutex.attempts]).toEqual([[], [], 0]);
    });

    test('is over without a trace when all checks are decided', () => {
      h.ask('a');
      h.ask('b');
      expect(h.size).toBe(2);
      expect(h.queue.answered('a')).toBe(true);
      expect([h.over, h.size]).toEqual(['no', 1]);
      expect(h.queue.answered('b')).toBe(true);
      expect([h.over, h.size, h.withdrawn, h.messages.published]).toEqual(['ending', 0, [], []]);
    });
  });

  describe('a queue with a waiter', () => {
    test('subscribes first, then settles, then volunteers', async () => {
      h.wait('a', 10);
      expect([channels(), h.store.calls.length, h.mutex.attempts]).toEqual([
        [h.names.wakeChannel],
        0,
        0,
      ]);
      h.confirmSubscription();
      await quiet();
      expect([h.queue.mode, h.store.calls.length, h.mutex.attempts]).toEqual(['settling', 1, 1]);
      // The queue has missed an earlier message about a loss.
      expect(h.store.last.ids).toEqual(['a']);
    });

    test('counts its lease from the check that had the first ticket', async () => {
      await h.advance(10 * LEASE_MILLIS);
      h.ask('a');
      await h.advance(1000);
      h.ticketed('a', 10, 3_600_000);
      await h.advance(LEASE_MILLIS / 3 - 1001);
      expect(h.store.renewals).toEqual([]);
      await h.advance(1);
      expect(h.store.renewals).toHaveLength(1);
    });

    test('as the leader settles when the window ends', async () => {
      await h.waitAndListen({ a: 10 });
      await h.advance(WINDOW_MILLIS - 1);
      expect(h.store.calls).toHaveLength(1);
      await h.advance(1);
      expect(h.store.calls).toHaveLength(2);
    });

    test('as a follower settles a grace later, and volunteers again', async () => {
      h.mutex.isTaken = true;
      await h.waitAndListen({ a: 10 });
      await h.advance(WINDOW_MILLIS + GRACE_MILLIS - 1);
      expect([h.store.calls.length, h.mutex.attempts]).toEqual([1, 1]);
      await h.advance(1);
      expect([h.store.calls.length, h.mutex.attempts]).toEqual([2, 2]);
    });

    test('as a follower leaves the window to the leader if its wake comes in time', async () => {
      h.mutex.isTaken = true;
      await h.waitAndListen({ a: 10 });
      await h.advance(WINDOW_MILLIS + 10);
      h.wake({ waiting: 1 });
      await h.advance(WINDOW_MILLIS - 1);
      expect(h.store.calls).toHaveLength(1);
    });

    test('leads as soon as the leader has resigned', async () => {
      h.mutex.isTaken = true;
      await h.waitAndListen({ a: 10 });
      h.mutex.isTaken = false;
      say({ leaderResigned: true });
      await h.advance(WINDOW_MILLIS);
      expect([h.mutex.isAcquired, h.store.calls.length]).toEqual([true, 2]);
    });

    test('knows its lowest ticket and its window, even if the first check has no ticket yet', async () => {
      expect(h.queue.known).toBeUndefined();
      h.ask('first');
      expect(h.queue.known).toBeUndefined();
      h.wait('b', 20);
      h.wait('a', 10);
      await h.advance(250);
      expect(h.queue.known).toEqual({
        lowestTicket: 10,
        requestId: 'a',
        millisToWindowEnd: 750,
        limits: LIMITS,
      });
    });

    test('asks about a request with a chosen id if a wake does not say which check has its approval', async () => {
      await h.waitAndListen({ b: 10 });
      h.queue.ask(new Waiter('a', {}, 1), undefined);
      h.ticketed('a#1', 20);
      h.wake({ granted: ['a'] });
      await quiet();
      expect(h.store.last.ids).toEqual(['a#1']);
    });

    test('withdraws a place that was taken over, which a settle may have put back', async () => {
      await h.waitAndListen({ a: 10 });
      const ended = [{ claim: 'a', why: 'taken_over' as const }];
      h.queue.onWake({ ...WAKE, ended });
      expect(await h.outcome('a')).toBe('RequestIdConflictError');
      expect(h.withdrawn).toEqual([['a']]);
    });
  });

  describe('a queue in a long window', () => {
    const LONG_MILLIS = 3_600_000;
    beforeEach(async () => {
      for (const [requestId, ticket] of [
        ['a', 10],
        ['b', 20],
      ] as const) {
        h.wait(requestId, ticket, LONG_MILLIS);
      }
      h.confirmSubscription();
      await h.store.last.answer({ millisToRoom: LONG_MILLIS, waiting: 2 });
    });

    const renew = async (notRenewed: readonly string[] = []): Promise<void> => {
      await h.advance(LEASE_MILLIS / 3);
      await h.store.lastRenewal.answer(notRenewed);
    };

    test('has its lease renewed after a third of its time, and makes no other call', async () => {
      await h.advance(LEASE_MILLIS / 3 - 1);
      expect(h.store.renewals).toEqual([]);
      await h.advance(1);
      expect(h.store.lastRenewal.leased).toEqual([[h.names.state, 2, 0]]);
      await h.store.lastRenewal.answer();
      for (let i = 0; i < 10; i += 1) await renew();
      expect([h.store.renewals.length, h.store.calls.length, h.mutex.attempts]).toEqual([11, 1, 1]);
    });

    test('settles if its lease is not renewed, and asks about all waiters if a wake was lost', async () => {
      h.loseWake();
      await renew([h.names.state]);
      expect([h.queue.mode, h.store.calls.length, h.store.last.ids]).toEqual(['settling', 2, []]);
      await h.store.last.answer({ waiting: 1, millisToRoom: LONG_MILLIS });
      await h.advance(WAKE_GRACE_MILLIS);
      expect(h.store.last.ids).toEqual(['a', 'b']);
    });

    test('leaves its lease to a settle that is under way', async () => {
      await h.advance(LEASE_MILLIS / 3 - 1);
      h.queue.onMemoryLost();
      await h.advance(LEASE_MILLIS);
      expect(h.store.renewals).toEqual([]);
      await h.store.last.answer({ millisToRoom: LONG_MILLIS, waiting: 2 });
      expect(h.queue.mode).toBe('settling');
      await h.store.last.answer({ millisToRoom: LONG_MILLIS, waiting: 2 });
      await h.advance(LEASE_MILLIS / 3);
      expect(h.store.renewals).toHaveLength(1);
    });

    test('asks about all waiters if the lease may have lapsed before the renewal', async () => {
      await h.advance(LEASE_MILLIS / 3);
      await h.advance(LEASE_MILLIS);
      await h.store.lastRenewal.answer();
      expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b']]);
    });

    test('reports the number of its waiters with tickets, and the number of the last wake', async () => {
      h.ask('c');
      h.disconnect('a');
      h.wake({ millisToRoom: LONG_MILLIS, waiting: 1 });
      await renew();
      expect(h.store.lastRenewal.leased).toEqual([[h.names.state, 1, 1]]);
    });

    test('settles after a while even if its lease is renewed', async () => {
      while (h.clock.now() + LEASE_MILLIS / 3 < LOOK_AGAIN_MILLIS) await renew();
      expect(h.store.calls).toHaveLength(1);
      await renew();
      expect([h.store.calls.length, h.store.last.ids]).toEqual([2, []]);
    });
  });

  test('a queue settles when Redis says so because of a recovery hold, and then when there is room', async () => {
    await h.waitAndListen({ a: 10 });
    await h.advance(WINDOW_MILLIS);
    await h.store.last.answer({ waiting: 1, millisToRoom: 500, millisToSettle: 300 });
    const calls = h.store.calls.length;
    await h.advance(299);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls]);
    await h.advance(1);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['settling', calls + 1]);
    await h.store.last.answer({ waiting: 1, millisToRoom: 200 });
    await h.advance(199);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['listening', calls + 1]);
    await h.advance(1);
    expect([h.queue.mode, h.store.calls.length]).toEqual(['settling', calls + 2]);
  });

  test('a leader prolongs its term when the next window would end after it', async () => {
    await h.waitAndListen({ a: 10 });
    for (let window = 0; window < 9; window += 1) {
      await h.advance(WINDOW_MILLIS);
      await h.store.last.answer({ waiting: 1 });
    }
    expect(h.mutex.prolonged).toBe(0);
    await h.advance(WINDOW_MILLIS);
    await h.store.last.answer({ waiting: 1 });
    expect([h.mutex.attempts, h.mutex.prolonged]).toEqual([1, 1]);
  });

  describe('a queue that is over', () => {
    test('no longer listens, leads, or sets timers', async () => {
      await h.waitAndListen({ a: 10 });
      h.disconnect('a');
      await h.advance(100_000);
      expect([channels(), h.mutex.isAcquired, h.over]).toEqual([[], false, 'ended']);
      expect([h.store.calls.length, h.withdrawn]).toEqual([1, [['a']]]);
    });

    test('announces its resignation if a ticket came after Redis said that nobody waits', async () => {
      await h.waitAndListen({ a: 10 });
      h.ask('b');
      h.wake({ granted: ['a'], waiting: 0 });
      h.ticketed('b', 20);
      h.disconnect('b');
      await quiet();
      expect(h.messages.published).toHaveLength(1);
    });

    test('announces nothing if Redis has said that nobody waits', async () => {
      await h.waitAndListen({ a: 10 });
      h.wake({ granted: ['a'], waiting: 0 });
      await quiet();
      expect([h.over, h.messages.published]).toEqual(['ended', []]);
    });

    test('has ended when its call has ended, and withdraws after it', async () => {
      await h.waitAndListen({ a: 10 });
      await h.advance(WINDOW_MILLIS);
      h.disconnect('a');
      await quiet();
      expect([h.over, h.withdrawn]).toEqual(['ending', []]);
      await h.store.last.answer({ waiting: 1 });
      expect([h.over, h.withdrawn]).toEqual(['ended', [['a']]]);
    });

    test.each<[what: string, happen: () => void]>([
      ['a subscription', () => h.queue.onSubscribed()],
      ['the return of the store', () => h.queue.onStoreAvailable()],
      ['a wake', () => h.queue.onWake({ ...WAKE, millisToRoom: 0, granted: ['a'] })],
      ['a resignation', () => h.queue.onLeaderResigned()],
      ['an answer', () => void h.queue.answered('a')],
      ['a ticket', () => h.ticketed('a', 10, 5)],
    ])('ignores %s that comes late', async (_what, happen) => {
      await REACH.over();
      await h.store.last.answer();
      const calls = h.store.calls.length;
      happen();
      await h.advance(100_000);
      expect([h.queue.mode, h.store.calls.length, h.over]).toEqual(['over', calls, 'ended']);
      expect(h.mutex.isAcquired).toBe(false);
    });
  });
});
