import { ownLimit } from '../../../src/limiter/limits.js';
import { settleDelay } from '../../../src/limiter/settle-delay.js';
import { ShortCalendar } from '../../support/short-calendar.js';

const DAY = 2400;
const daily = ownLimit(86_400_000, 1, {
  name: 'fixed_window',
  calendar: new ShortCalendar('Test/Zone', 0, DAY / 24),
});
const second = ownLimit(1000, 1);

test('the keys of a calendar are served all over the second after the end of its window', () => {
  const keys = Array.from({ length: 1000 }, (_, i) => `tenant-${i}`);
  const delays = keys.map((key) => settleDelay(key, [second, daily], DAY));
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...delays)).toBeLessThan(1000);
  const tenths = new Set(delays.map((delay) => Math.floor(delay / 100)));
  expect(tenths.size).toBe(10);
  // As Redis says that moment.
  expect(keys.map((key) => settleDelay(key, [daily], DAY - 0.999))).toEqual(delays);
  expect(keys.map((key) => settleDelay(key, [daily], DAY + 0.001))).toEqual(delays);
});

test.each([
  ['the window of a calendar goes on', [daily], DAY - 1],
  ['a window of a fixed length ends', [second], DAY],
])('nothing is served later if %s', (_what, limits, roomAt) => {
  expect(settleDelay('key', limits, roomAt)).toBe(0);
});
