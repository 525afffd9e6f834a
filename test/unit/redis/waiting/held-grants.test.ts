import { QueueHarness, WINDOW_MILLIS } from '../../../support/waiting/queue-harness.js';

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
