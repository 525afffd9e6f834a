import { WindowTiming } from '../../../../src/redis/waiting/window-timing.js';

const WINDOW = 1000;
const GRACE = 60;
/** How far Redis's clock is ahead of this one. */
const AHEAD = 1_000_000;

let timing: WindowTiming;
beforeEach(() => {
  timing = new WindowTiming(
    () => WINDOW,
    GRACE,
    () => 0,
  );
});

test('the leader is due when there is room, others a grace later', () => {
  timing.learn(100, AHEAD + 100, 400);
  expect(timing.dueAt(true)).toBe(500);
  expect(timing.dueAt(false)).toBe(560);
});

describe('with room expected at 500 ms, the timing handles', () => {
  beforeEach(() => {
    timing.learn(100, AHEAD + 100, 400);
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
    timing.learn(now, AHEAD + at, millisToRoom);
    expect(timing.roomAt).toBe(roomAt);
  });

  test.each<[what: string, now: number, millisToRoom: number, roomAt: number]>([
    ['sooner room', 110, 250, 360],
    ['later room, which may be older news', 110, 1000, 500],
    ['later room once the time has come', 500, 1000, 1500],
  ])('a message that may be older, with %s', (_what, now, millisToRoom, roomAt) => {
    timing.learnUnordered(now, millisToRoom);
    expect(timing.roomAt).toBe(roomAt);
  });

  test('a moment again after a message whose moment is unknown', () => {
    timing.learnUnordered(110, 250);
    timing.learn(120, AHEAD + 119, 381);
    expect(timing.roomAt).toBe(501);
  });
});

test('a clock that goes back leads to one settle that is too early, if the same moment is named again', () => {
  timing.learn(100, AHEAD + 100, 400);
  // It goes back by 300 ms, so the same moment is 300 ms further away.
  timing.learn(200, AHEAD - 100, 600);
  expect(timing.roomAt).toBe(500);
  timing.learn(500, AHEAD + 200, 300);
  expect(timing.roomAt).toBe(800);
});

test('the remembered time counts down, in whole milliseconds', () => {
  timing.learn(100, AHEAD + 100, 400.4);
  expect([100, 300.7, 500, 600].map((now) => timing.millisToRoom(now))).toEqual([
    400, 200, 0, -100,
  ]);
});

test('an unknown window is looked for after the length of one window', () => {
  timing.learn(100, AHEAD + 100, 400);
  timing.forget(700);
  expect(timing.dueAt(true)).toBe(1700);
  timing.learn(710, AHEAD + 710, 5);
  expect(timing.dueAt(true)).toBe(715);
});

test('a settle is due later by a delay, which depends on the time of room by the clock of Redis', () => {
  const end = AHEAD + 500;
  const delayed = new WindowTiming(
    () => WINDOW,
    GRACE,
    (storeRoomAt) => (storeRoomAt === end ? 300 : 0),
  );
  delayed.learn(100, AHEAD + 100, 400);
  expect([delayed.roomAt, delayed.dueAt(true), delayed.dueAt(false)]).toEqual([500, 800, 860]);
  delayed.learn(110, AHEAD + 110, 200);
  expect(delayed.dueAt(true)).toBe(310);
});

test('a window may be longer than any timer', () => {
  const days = 366 * 24 * 60 * 60 * 1000;
  const long = new WindowTiming(
    () => days,
    GRACE,
    () => 0,
  );
  long.learn(0, AHEAD, days);
  expect(long.dueAt(true)).toBe(days);
});
