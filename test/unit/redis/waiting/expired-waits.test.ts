import type { Decision } from '../../../../src/limiter/limiter.js';
import { Waiter } from '../../../../src/limiter/waiter.js';
import {
  GRACE_MILLIS,
  QueueHarness,
  WINDOW_MILLIS,
} from '../../../support/waiting/queue-harness.js';
import { quiet, STORE_IS_AWAY } from '../../../support/waiting/scripted-store.js';

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

test('the last expired wait ends the queue', async () => {
  h.ask('a', LONGEST_WAIT);
  h.ticketed('a', 10, WINDOW_MILLIS);
  h.confirmSubscription();
  await h.store.last.answer({ waiting: 1 });
  await h.advance(LONGEST_WAIT);
  await h.store.last.answer({ waiting: 1 });
  expect(await h.outcome('a')).toBe('denied');
  expect(h.over).toBe('ended');
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
