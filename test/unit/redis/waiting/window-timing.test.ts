import { WindowTiming } from '../../../../src/redis/waiting/window-timing.js';

const WINDOW = 1000;
const GRACE = 60;

let timing: WindowTiming;
beforeEach(() => {
  timing = new WindowTiming(() => WINDOW, GRACE);
});

test('the leader is due when there is room, others a grace later', () => {
  timing.learn(100, 400);
  expect(timing.dueAt(true)).toBe(500);
  expect(timing.dueAt(false)).toBe(560);
});

test.each<[what: string, later: [now: number, millisToRoom: number], roomAt: number]>([
  ['what is heard later of the same window, and too late', [110, 395], 500],
  ['what is heard with less delay', [110, 385], 495],
  ['that there is room now', [110, 0], 110],
  ['that the queue is held until some time in this window', [110, 250], 360],
  ['the next window', [110, 1390], 1500],
  ['anything once that time has come', [500, 3], 503],
  ['the next window, when the time has come', [501, 999], 1500],
])('after 400 ms from 100 on, takes in %s', (_what, [now, millisToRoom], roomAt) => {
  timing.learn(100, 400);
  timing.learn(now, millisToRoom);
  expect(timing.dueAt(true)).toBe(roomAt);
});

test('what it remembers counts down to 0, in whole milliseconds', () => {
  timing.learn(100, 400.4);
  expect([100, 300.7, 500, 600].map((now) => timing.millisToRoom(now))).toEqual([400, 200, 0, 0]);
});

test('a window that nobody knows of is looked for when one would have passed', () => {
  timing.learn(100, 400);
  timing.forget(700);
  expect(timing.dueAt(true)).toBe(1700);
  timing.learn(710, 5);
  expect(timing.dueAt(true)).toBe(715);
});

test('a window may be longer than any timer', () => {
  const days = 366 * 24 * 60 * 60 * 1000;
  const long = new WindowTiming(() => days, GRACE);
  long.learn(0, days);
  expect(long.dueAt(true)).toBe(days);
});
