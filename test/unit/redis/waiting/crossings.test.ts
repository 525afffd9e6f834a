import type { SettleReply } from '../../../../src/redis/scripts/settle-codec.js';
import { WAKE_GRACE_MILLIS } from '../../../../src/redis/waiting/wake-numbers.js';
import {
  GRACE_MILLIS,
  LEASE_MILLIS,
  QueueHarness,
  WINDOW_MILLIS,
} from '../../../support/waiting/queue-harness.js';
import { quiet, STORE_IS_AWAY } from '../../../support/waiting/scripted-store.js';
import type { Decision } from '../../../../src/limiter/limiter.js';
import { Waiter } from '../../../../src/limiter/waiter.js';

describe('messages that cross', () => {
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

    test('shows at the next ticket that one was lost', async () => {
      h.loseWake();
      h.wait('c', 30);
      await h.advance(WAKE_GRACE_MILLIS);
      expect([h.queue.mode, h.store.last.ids]).toEqual(['settling', ['a', 'b', 'c']]);
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
});

describe('waits that expire', () => {
  const LONGEST_WAIT = 400;

  let h: QueueHarness;
  beforeEach(() => {
    h = new QueueHarness();
  });

  /** `a` waits for at most LONGEST_WAIT, `b` without a limit; the queue listens. */
  async function waitAndListen(): Promise<void> {
    h.ask('a', LONGEST_WAIT);
    h.ticketed('a', 10, WINDOW_MILLIS);
    await h.waitAndListen({ b: 20 });
  }

  test('an expired wait asks Redis, and is denied if its turn has not come', async () => {
    await waitAndListen();
    await h.advance(LONGEST_WAIT - 1);
    expect(h.queue.mode).toBe('listening');
    await h.advance(1);
    expect(h.store.last.ids).toEqual(['a']);
    expect(await h.outcome('a')).toBeUndefined();

    await h.store.last.answer({ waiting: 2 });
    expect(await h.outcome('a')).toBe('denied');
    expect(await h.outcome('b')).toBeUndefined();
    expect(h.withdrawn).toEqual([['a']]);
    expect(h.size).toBe(1);
  });

  test('an expired wait is approved if its turn has come by then', async () => {
    await waitAndListen();
    await h.advance(LONGEST_WAIT);
    await h.store.last.answer({ waiting: 1, granted: ['a'] });
    expect(await h.outcome('a')).toBe('approved');
    expect(h.withdrawn).toEqual([]);
  });

  test('a wait that expires during a call is asked about by the next call', async () => {
    await waitAndListen();
    await h.advance(LONGEST_WAIT - 1);
    h.queue.onMemoryLost();
    const underWay = h.store.last;
    await h.advance(1);
    await underWay.answer({ waiting: 2 });
    expect(await h.outcome('a')).toBeUndefined();
    expect(h.store.last).not.toBe(underWay);
    expect(h.store.last.ids).toEqual(['a']);
    await h.store.last.answer({ waiting: 2 });
    expect(await h.outcome('a')).toBe('denied');
  });

  test('an expired wait fails if Redis can not be asked, and is withdrawn when it can', async () => {
    await waitAndListen();
    await h.advance(LONGEST_WAIT);
    await h.store.last.fail();
    expect(await h.outcome('a')).toBe(STORE_IS_AWAY.name);
    expect(await h.outcome('b')).toBeUndefined();
    expect(h.withdrawn).toEqual([['a']]);
  });

  test('in an outage an expired wait does not wait for the next attempt', async () => {
    await waitAndListen();
    h.queue.onMemoryLost();
    for (let millis = 0; millis < LONGEST_WAIT; millis += 1) {
      if (h.queue.mode === 'settling') await h.store.last.fail();
      await h.advance(1);
    }
    expect(h.queue.mode).toBe('settling');
    await h.store.last.fail();
    expect(await h.outcome('a')).toBe(STORE_IS_AWAY.name);
  });

  test('a wait does not expire without a ticket, since it begins with the place', async () => {
    h.ask('a', LONGEST_WAIT);
    await h.advance(LONGEST_WAIT);
    h.ticketed('a', 10, WINDOW_MILLIS);
    await h.advance(LONGEST_WAIT - 1);
    expect(await h.outcome('a')).toBeUndefined();
  });

  test('a waiter that was approved is not asked about when its wait would expire', async () => {
    await waitAndListen();
    h.wake({ granted: ['a'], waiting: 1 });
    expect(await h.outcome('a')).toBe('approved');
    const calls = h.store.calls.length;
    await h.advance(LONGEST_WAIT + GRACE_MILLIS);
    expect(h.store.calls).toHaveLength(calls);
  });

  describe('a wait for a kept place whose approval is not confirmed yet', () => {
    let decision: Promise<Decision>;

    /** The turn comes, and the wait expires. */
    async function expireUnconfirmed(): Promise<void> {
      const waiter = new Waiter('a', { keepMillis: 1000, maxWaitMillis: LONGEST_WAIT }, 1);
      decision = waiter.decision;
      decision.catch(() => undefined);
      h.queue.ask(waiter, undefined);
      h.ticketed('a#1', 10, WINDOW_MILLIS);
      await h.waitAndListen({ b: 20 });
      h.wake({ granted: ['a#r1#1'], waiting: 1 });
      await h.advance(LONGEST_WAIT);
    }

    test('fails at its end if Redis can not be asked, and is withdrawn when it can', async () => {
      h.store.confirm = () => Promise.reject(STORE_IS_AWAY);
      await expireUnconfirmed();
      await h.store.last.fail();
      await expect(decision).rejects.toBe(STORE_IS_AWAY);
      expect(h.withdrawn).toEqual([['a#1']]);
    });

    test('is denied at its end if Redis has lost the approval', async () => {
      let lose = (): void => undefined;
      h.store.confirm = () =>
        new Promise((resolve) => {
          lose = () => {
            resolve([{ mayBeTold: [false], quota: undefined }]);
          };
        });
      await expireUnconfirmed();
      await h.store.last.answer({ waiting: 1 });
      lose();
      await quiet();
      expect(h.store.last.ids).toEqual(['a#1']);
      await h.store.last.answer({ waiting: 2, putBack: ['a#1'] });
      expect(await decision).toMatchObject({ outcome: 'denied', reason: 'wait_expired' });
      expect(h.withdrawn).toEqual([['a#1']]);
    });
  });
});

describe('grants that are held', () => {
  const HOLD_MILLIS = 1000;
  /** Redis's time at the beginning of each test. */
  const START = 1_700_000_000_000;

  let h: QueueHarness;
  beforeEach(async () => {
    h = new QueueHarness();
    h.storeTime = START;
    h.wait('held', 10, 10 * WINDOW_MILLIS, HOLD_MILLIS);
    h.wait('plain', 20, 10 * WINDOW_MILLIS);
    h.confirmSubscription();
    await h.store.last.answer({ waiting: 2, millisToRoom: 10 * WINDOW_MILLIS });
  });

  /** The replica stands still, and then goes on. */
  async function standStill(millis: number): Promise<void> {
    h.storeTime! += millis;
    await h.advance(millis);
  }

  describe('a wake with a held approval', () => {
    const wake = (at?: number): void => {
      h.wake({ at, granted: ['held'] });
    };

    test('is an answer while the hold lasts', async () => {
      await standStill(HOLD_MILLIS - 1);
      wake(START);
      expect(await h.outcome('held')).toBe('approved');
    });

    test('that is read when the hold may have lapsed is no answer: Redis is asked, and tells what it knows', async () => {
      await standStill(HOLD_MILLIS);
      wake(START);
      expect(await h.outcome('held')).toBeUndefined();
      expect(h.store.last.ids).toEqual(['held']);

      // Put back in its place.
      await h.store.last.answer({ waiting: 2, putBack: ['held'], at: h.storeTime! });
      expect(await h.outcome('held')).toBeUndefined();
      wake(h.storeTime);
      expect(await h.outcome('held')).toBe('approved');
      expect(h.withdrawn).toEqual([]);
    });

    test.each<[what: string, at: number | undefined, storeTime: number | undefined]>([
      ['the time is not in the wake, as from an older version', undefined, START],
      ["Redis's time is unknown", START, undefined],
    ])('is confirmed by Redis if %s', async (_what, at, storeTime) => {
      h.storeTime = storeTime;
      wake(at);
      expect(await h.outcome('held')).toBeUndefined();
      expect(h.store.last.ids).toEqual(['held']);
      await h.store.last.answer({ granted: ['held'], holdsLeft: new Map([['held', 1]]) });
      expect(await h.outcome('held')).toBe('approved');
    });
  });

  test('a wake with a plain approval is an answer, however late', async () => {
    await standStill(HOLD_MILLIS);
    h.wake({ at: START, granted: ['plain'] });
    expect(await h.outcome('plain')).toBe('approved');
  });

  describe('the reply to a settle call with a held approval', () => {
    beforeEach(() => {
      h.queue.onMemoryLost();
    });

    test.each<[what: string, left: number, tookMillis: number]>([
      ['from before the call', 500, 500],
      ['of the call', HOLD_MILLIS, HOLD_MILLIS],
    ])('%s that is read too late leads to another call', async (_what, left, tookMillis) => {
      const call = h.store.last;
      const holdsLeft = new Map(left < HOLD_MILLIS ? [['held', left]] : []);
      await standStill(tookMillis);
      await call.answer({ granted: ['held'], holdsLeft });
      expect(await h.outcome('held')).toBeUndefined();
      expect(h.store.last).not.toBe(call);
      await h.store.last.answer({ granted: ['held'] });
      expect(await h.outcome('held')).toBe('approved');
    });

    test('that is read in time is an answer', async () => {
      await standStill(499);
      await h.store.last.answer({ granted: ['held'], holdsLeft: new Map([['held', 500]]) });
      expect(await h.outcome('held')).toBe('approved');
    });
  });

  describe('a waiter that is told of its approval while a call asks about it', () => {
    beforeEach(async () => {
      h.queue.onMemoryLost();
      h.wake({ at: START, granted: ['held'] });
      expect(await h.outcome('held')).toBe('approved');
    });

    test('and is put back by the call is withdrawn, since nobody waits for it', async () => {
      await h.store.last.answer({ putBack: ['held'], at: START + HOLD_MILLIS });
      expect(h.withdrawn).toEqual([['held']]);
    });

    test('and is put back, and approved again, is withdrawn', async () => {
      await h.store.last.answer({
        putBack: ['held'],
        granted: ['held'],
        at: START + HOLD_MILLIS,
      });
      expect(h.withdrawn).toEqual([['held']]);
    });

    test('keeps the approval if it was put back before', async () => {
      await h.store.last.answer({ putBack: ['held'], granted: ['held'], at: START - 1 });
      expect(h.withdrawn).toEqual([]);
    });

    test('keeps the approval if the call has found it', async () => {
      await h.store.last.answer({ granted: ['held'], at: START + 1 });
      expect(h.withdrawn).toEqual([]);
    });
  });
});
