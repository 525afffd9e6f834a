import { ModeTimer } from '../../../../src/redis/waiting/mode-timer.js';
import { ManualClock } from '../../../support/manual-clock.js';

let clock: ManualClock;
let timer: ModeTimer;
let rung: string[];
beforeEach(() => {
  clock = new ManualClock(0);
  timer = new ModeTimer(clock);
  rung = [];
});

const arm = (dueAt: number, name: string): void => timer.arm(dueAt, () => rung.push(name));

test('the timer rings once, at its time', async () => {
  arm(100, 'a');
  await clock.advance(99);
  expect(rung).toEqual([]);
  await clock.advance(1000);
  expect(rung).toEqual(['a']);
});

test('the timer rings at once for a time that has passed', async () => {
  await clock.advance(50);
  arm(10, 'a');
  await clock.advance(0);
  expect(rung).toEqual(['a']);
});

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

test('a timer can be armed again as it rings', async () => {
  timer.arm(100, () => {
    rung.push('a');
    arm(100.5, 'b');
  });
  await clock.advance(1000);
  expect(rung).toEqual(['a', 'b']);
});
