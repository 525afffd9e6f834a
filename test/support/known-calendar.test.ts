import { calendarsSaidIn, KnownCalendar } from './known-calendar.js';

const NAME = { unit: 'day', timeZone: 'Test/Zone' } as const;
const LONGEST = 25;
const STORED = { start: 100, end: 124, nextEnd: 147 };

/** The starts and ends of the windows at these times. */
function windowsAt(calendar: KnownCalendar, ...times: readonly number[]): number[][] {
  return times.map((time) => {
    const { start, end } = calendar.windowAt(time);
    return [start, end];
  });
}

describe('what a script knows of a calendar', () => {
  const stored = new KnownCalendar(NAME, LONGEST, STORED);

  test('without a caller that knows it: the stored window, the next one, and then windows of the greatest length', () => {
    expect(windowsAt(stored, 123, 124, 146, 147, 197)).toEqual([
      [100, 124],
      [124, 147],
      [124, 147],
      [147, 172],
      [197, 222],
    ]);
  });

  test('with one: what it says after the end of the stored window, which stands', () => {
    const said = { start: 101, end: 125, nextEnd: 148 };
    expect(windowsAt(stored.saidToBe(said), 101, 124, 125)).toEqual([
      [100, 124],
      [101, 125],
      [125, 148],
    ]);
  });

  test('of a window that begins later than now: nothing', () => {
    const said = { start: 76, end: 100, nextEnd: 124 };
    expect(windowsAt(stored.saidToBe(said), 99)).toEqual([[76, 100]]);
  });

  test('is in a text of rules', () => {
    const text = '25:1:5,=calendar:day.Test.Zone@day.Test.Zone=100:124:147@day.UTC=1:2:3';
    expect([...calendarsSaidIn(text)]).toEqual([
      ['day.Test.Zone', STORED],
      ['day.UTC', { start: 1, end: 2, nextEnd: 3 }],
    ]);
  });
});
