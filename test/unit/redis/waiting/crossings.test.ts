import { QueueHarness, WINDOW_MILLIS } from '../../../support/waiting/queue-harness.js';
import { quiet, STORE_IS_AWAY } from '../../../support/waiting/scripted-store.js';
import type { Decision } from '../../../../src/limiter/limiter.js';
import { CallerPresence } from '../../../../src/limiter/request.js';
import { Waiter } from '../../../../src/limiter/waiter.js';

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
            resolve([{ mayBeTold: [false], quotaOf: undefined }]);
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
    const wake = (at: number): void => {
      h.wake({ at, granted: ['held'] });
    };

    test('that is read when the hold may have lapsed is no answer: Redis is asked, and tells what it knows', async () => {
      await standStill(HOLD_MILLIS);
      wake(START);
      expect(await h.outcome('held')).toBeUndefined();
      expect(h.store.last.ids).toEqual(['held']);

      // Put back in its place.
      await h.store.last.answer({ waiting: 2, putBack: ['held'], at: h.storeTime! });
      expect(await h.outcome('held')).toBeUndefined();
      wake(h.storeTime!);
      expect(await h.outcome('held')).toBe('approved');
      expect(h.withdrawn).toEqual([]);
    });
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

    test('the same goes for a kept place, whose approval is confirmed before', async () => {
      const waiter = new Waiter('a', { keepMillis: HOLD_MILLIS }, 1);
      h.queue.ask(waiter, undefined);
      h.ticketed('a#1', 30, WINDOW_MILLIS);
      h.wake({ at: START, granted: ['a#r1#1'] });
      expect(await waiter.decision).toMatchObject({ outcome: 'approved' });
      await h.store.last.answer({ putBack: ['a#1'], at: START + HOLD_MILLIS });
      expect(h.withdrawn).toEqual([['a#1']]);
    });
  });
});

test('the time of a kept place begins again when Redis has answered its check', async () => {
  const h = new QueueHarness();
  const caller = new CallerPresence();
  h.queue.ask(new Waiter('a', { keepMillis: 100 }, 1), caller);
  caller.disconnect();
  await h.advance(100);
  h.ticketed('a#1', 10, WINDOW_MILLIS);
  await h.advance(99);
  expect(h.withdrawn).toEqual([]);
});
