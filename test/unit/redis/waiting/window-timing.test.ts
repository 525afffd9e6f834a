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
  ['later news of the same window with more delay', [110, 395], 500],
  ['news with less delay', [110, 385], 495],
  ['news that there is room now', [110, 0], 110],
  ['news that the queue is held until a time in this window', [110, 250], 360],
  ['news of the next window', [110, 1390], 1500],
  ['any news once that time has come', [500, 3], 503],
  ['news of the next window, when the time has come', [501, 999], 1500],
])('with room expected at 500 ms, the timing handles %s', (_what, [now, millisToRoom], roomAt) => {
  timing.learn(100, 400);
  timing.learn(now, millisToRoom);
  expect(timing.dueAt(true)).toBe(roomAt);
});

test('the remembered time counts down, in whole milliseconds', () => {
  timing.learn(100, 400.4);
  expect([100, 300.7, 500, 600].map((now) => timing.millisToRoom(now))).toEqual([
    400, 200, 0, -100,
  ]);
});

test('an unknown window is looked for after the length of one window', () => {
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
