import type { Heard } from '../../../../src/redis/waiting/wake-numbers.js';
import { WindowLeader } from '../../../../src/redis/waiting/window-leader.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog } from '../../../support/recorded-log.js';
import { ScriptedMutex } from '../../../support/waiting/scripted-mutex.js';
import { quiet } from '../../../support/waiting/scripted-store.js';
import { QueueView } from '../../../../src/redis/waiting/queue-view.js';
import { ModeTimer } from '../../../../src/redis/waiting/queue-mode.js';

describe('a leader', () => {
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

    test('volunteers no more', async () => {
      await leader.resign(true);
      await leader.volunteer(WINDOW);
      expect([mutex.attempts, leader.isLeading]).toEqual([1, false]);
    });
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
});

describe('the time of room', () => {
  const WINDOW = 1000;
  const GRACE = 60;
  /** How far Redis's clock is ahead of this one. */
  const AHEAD = 1_000_000;

  const viewWith = (delayMillis: (storeRoomAt: number) => number): QueueView =>
    new QueueView({ windowMillis: () => WINDOW, graceMillis: GRACE, delayMillis });

  function learn(
    view: QueueView,
    now: number,
    at: number,
    millisToRoom?: number,
    heard: Heard = 'new',
  ): void {
    view.learn(now, heard, { at, millisToRoom, waiting: 1, limits: '' }, false);
  }

  let timing: QueueView;
  beforeEach(() => {
    timing = viewWith(() => 0);
  });

  test('the leader is due when there is room, others a grace later', () => {
    learn(timing, 100, AHEAD + 100, 400);
    expect(timing.dueAt(true)).toBe(500);
    expect(timing.dueAt(false)).toBe(560);
  });

  describe('with room expected at 500 ms, the timing handles', () => {
    beforeEach(() => {
      learn(timing, 100, AHEAD + 100, 400);
    });

    test.each<[what: string, now: number, at: number, millisToRoom: number, roomAt: number]>([
      ['the same moment with more delay', 110, 104, 396, 500],
      ['the same moment with less delay', 110, 115, 385, 495],
      ['the same moment in a fraction of a millisecond', 110, 104, 395.1, 500],
      ['an earlier moment', 110, 104, 250, 360],
      ['a moment that is a little later', 110, 109, 393, 503],
      ['the end of the next window', 110, 109, 1391, 1501],
      ['room now', 110, 109, 0, 110],
      ['the same moment once it has come, since it was too early', 500, 497, 3, 503],
      ['the end of the next window once the time has come', 501, 500, 1000, 1501],
      ['an earlier time of a clock that has gone back', 110, -290, 690, 800],
    ])('%s', (_what, now, at, millisToRoom, roomAt) => {
      learn(timing, now, AHEAD + at, millisToRoom);
      expect(timing.roomAt).toBe(roomAt);
    });

    test.each<[what: string, now: number, millisToRoom: number, roomAt: number]>([
      ['sooner room', 110, 250, 360],
      ['later room, which may be older news', 110, 1000, 500],
      ['later room once the time has come', 500, 1000, 1500],
    ])('a message that may be older, with %s', (_what, now, millisToRoom, roomAt) => {
      learn(timing, now, AHEAD + now, millisToRoom, 'late');
      expect(timing.roomAt).toBe(roomAt);
    });

    test('a moment again after a message whose moment is unknown', () => {
      learn(timing, 110, AHEAD + 110, 250, 'late');
      learn(timing, 120, AHEAD + 119, 381);
      expect(timing.roomAt).toBe(501);
    });
  });

  test('the remembered time counts down, in whole milliseconds', () => {
    learn(timing, 100, AHEAD + 100, 400.4);
    expect([100, 300.7, 500, 600].map((now) => timing.millisToRoom(now))).toEqual([
      400, 200, 0, -100,
    ]);
  });

  test('an unknown window is looked for after the length of one window', () => {
    learn(timing, 100, AHEAD + 100, 400);
    learn(timing, 700, AHEAD + 700);
    expect(timing.dueAt(true)).toBe(1700);
    learn(timing, 710, AHEAD + 710, 5);
    expect(timing.dueAt(true)).toBe(715);
  });

  test('a settle is due later by a delay, which depends on the time of room by the clock of Redis', () => {
    const end = AHEAD + 500;
    const delayed = viewWith((storeRoomAt) => (storeRoomAt === end ? 300 : 0));
    learn(delayed, 100, AHEAD + 100, 400);
    expect([delayed.roomAt, delayed.dueAt(true), delayed.dueAt(false)]).toEqual([500, 800, 860]);
    learn(delayed, 110, AHEAD + 110, 200);
    expect(delayed.dueAt(true)).toBe(310);
  });
});

describe('a timer', () => {
  let clock: ManualClock;
  let timer: ModeTimer;
  let rung: string[];
  beforeEach(() => {
    clock = new ManualClock(0);
    timer = new ModeTimer(clock);
    rung = [];
  });

  const arm = (dueAt: number, name: string): void => timer.arm(dueAt, () => rung.push(name));

  test.each([
    ['sooner', 50],
    ['later', 200],
  ])('a timer that is armed again %s replaces the one before', async (_what, dueAt) => {
    arm(100, 'a');
    arm(dueAt, 'b');
    await clock.advance(dueAt - 1);
    expect(rung).toEqual([]);
    await clock.advance(1000);
    expect(rung).toEqual(['b']);
  });

  test('a timer stays if its new time differs by less than a millisecond', async () => {
    arm(100, 'a');
    arm(99.5, 'b');
    await clock.advance(1000);
    expect(rung).toEqual(['a']);
  });

  test('a cancelled timer does not ring, and can be armed again for the same time', async () => {
    arm(100, 'a');
    timer.cancel();
    arm(100, 'b');
    await clock.advance(1000);
    expect(rung).toEqual(['b']);
  });
});
