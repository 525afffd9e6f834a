import { WindowLeader } from '../../../../src/redis/waiting/window-leader.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog } from '../../../support/recorded-log.js';
import { ScriptedMutex } from '../../../support/waiting/scripted-mutex.js';
import { quiet } from '../../../support/waiting/scripted-store.js';

const AWAY = new Error('the store is down');
const WINDOW = 60_000;
/** How long a term goes on after the window in which it begins. */
const AFTER_WINDOW = 10_000;

let clock: ManualClock;
let mutex: ScriptedMutex;
let announced: number;
let leader: WindowLeader;
beforeEach(() => {
  clock = new ManualClock(0);
  mutex = new ScriptedMutex();
  announced = 0;
  const announce = (): Promise<void> => {
    announced += 1;
    return Promise.resolve();
  };
  const { logger } = recordLog('silent');
  leader = new WindowLeader({ mutex, announce, clock, logger });
});

/** Holds up attempts and releases until the function that it returns is called. */
function holdUp(): () => void {
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  mutex.answer = () => held;
  return letGo;
}

test('a candidate leads once it has volunteered, if nobody else leads', async () => {
  expect(leader.isLeading).toBe(false);
  await leader.volunteer(WINDOW);
  expect(leader.isLeading).toBe(true);
  await leader.volunteer(WINDOW);
  expect(mutex.attempts).toBe(1);
});

test('a candidate does not lead if another leads, and may volunteer again', async () => {
  mutex.isTaken = true;
  await leader.volunteer(WINDOW);
  expect(leader.isLeading).toBe(false);
  mutex.isTaken = false;
  await leader.volunteer(WINDOW);
  expect(leader.isLeading).toBe(true);
});

test('a candidate volunteers again after an attempt under way, which may have come too early', async () => {
  mutex.isTaken = true;
  const letGo = holdUp();
  const first = leader.volunteer(WINDOW);
  const second = leader.volunteer(WINDOW);
  await quiet();
  expect(mutex.attempts).toBe(1);
  letGo();
  await first;
  mutex.isTaken = false;
  await second;
  expect([mutex.attempts, leader.isLeading]).toEqual([2, true]);
});

test('a candidate does not lead if the store fails, and may volunteer again', async () => {
  mutex.answer = () => Promise.reject(AWAY);
  await leader.volunteer(WINDOW);
  expect(leader.isLeading).toBe(false);
  mutex.answer = () => Promise.resolve();
  await leader.volunteer(WINDOW);
  expect(leader.isLeading).toBe(true);
});

describe('a term', () => {
  beforeEach(() => leader.volunteer(WINDOW));

  test('lasts beyond the end of its window, counted from when it was asked for', async () => {
    expect(mutex.terms).toEqual([WINDOW + AFTER_WINDOW]);
    await clock.advance(WINDOW + AFTER_WINDOW - 1);
    expect(leader.isLeading).toBe(true);
    await clock.advance(1);
    expect(leader.isLeading).toBe(false);
  });

  test('is short if the window has ended', async () => {
    const late = new WindowLeader({
      mutex,
      announce: () => Promise.resolve(),
      clock,
      logger: recordLog('silent').logger,
    });
    await late.volunteer(clock.now() - 5);
    expect(mutex.terms.at(-1)).toBe(AFTER_WINDOW);
  });

  test('needs no more time before it would end within a second after a window', () => {
    const ends = WINDOW + AFTER_WINDOW;
    expect([WINDOW, ends - 1000, ends - 999].map((at) => leader.needsTime(at))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('is prolonged for a window that ends after it, once', async () => {
    await clock.advance(WINDOW);
    await Promise.all([leader.volunteer(2 * WINDOW), leader.volunteer(2 * WINDOW)]);
    expect([mutex.attempts, mutex.prolonged, mutex.terms.at(-1)]).toEqual([
      1,
      1,
      WINDOW + AFTER_WINDOW,
    ]);
    await clock.advance(WINDOW);
    expect(leader.isLeading).toBe(true);
  });

  test('that was lost begins again if nobody leads', async () => {
    mutex.isAcquired = false;
    await leader.volunteer(2 * WINDOW);
    expect([mutex.prolonged, mutex.attempts, leader.isLeading]).toEqual([1, 2, true]);
  });

  test('that was lost is over if another leads', async () => {
    mutex.isAcquired = false;
    mutex.isTaken = true;
    await leader.volunteer(2 * WINDOW);
    expect(leader.isLeading).toBe(false);
    expect(leader.needsTime(2 * WINDOW)).toBe(false);
  });

  test('goes on unchanged if the store fails', async () => {
    mutex.answer = () => Promise.reject(AWAY);
    await leader.volunteer(2 * WINDOW);
    expect([leader.isLeading, leader.needsTime(2 * WINDOW)]).toEqual([true, true]);
  });
});

describe('a leader that resigns', () => {
  beforeEach(() => leader.volunteer(WINDOW));

  test('no longer leads, and announces this when its place is free', async () => {
    const letGo = holdUp();
    const resigned = leader.resign(true);
    expect(leader.isLeading).toBe(false);
    await quiet();
    expect(announced).toBe(0);
    letGo();
    await resigned;
    expect([mutex.isAcquired, announced]).toEqual([false, 1]);
  });

  test('announces nothing if nobody else waits', async () => {
    await leader.resign(false);
    expect([mutex.isAcquired, announced]).toEqual([false, 0]);
  });

  test('announces nothing if its place is not free', async () => {
    mutex.answer = () => Promise.reject(AWAY);
    await leader.resign(true);
    expect(announced).toBe(0);
  });

  test('announces nothing if its term was over', async () => {
    await clock.advance(WINDOW + AFTER_WINDOW);
    await leader.resign(true);
    expect([mutex.releases, announced]).toEqual([1, 0]);
  });

  test('volunteers no more', async () => {
    await leader.resign(true);
    await leader.volunteer(WINDOW);
    expect([mutex.attempts, leader.isLeading]).toEqual([1, false]);
  });
});

test('a candidate that never led announces nothing', async () => {
  mutex.isTaken = true;
  await leader.volunteer(WINDOW);
  await leader.resign(true);
  expect([mutex.releases, announced]).toEqual([1, 0]);
});

test('a candidate elected while it resigns frees the place, and announces that', async () => {
  const letGo = holdUp();
  void leader.volunteer(WINDOW);
  await quiet();
  const resigned = leader.resign(true);
  letGo();
  await resigned;
  expect([mutex.attempts, mutex.isAcquired, announced]).toEqual([1, false, 1]);
});
