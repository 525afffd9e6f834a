import {
  CALENDAR_UNITS,
  type CalendarUnit,
  type CalendarWindow,
} from '../../../src/limiter/calendar/calendar.js';
import { ZonedCalendar } from '../../../src/limiter/calendar/zoned-calendar.js';
import { notATimeZone, timeZoneNamed } from '../../../src/limiter/calendar/time-zones.js';
import { ownLimit } from '../../../src/limiter/limits.js';
import { settleDelay } from '../../../src/limiter/settle-delay.js';
import fc from '../../support/properties.js';
import { ShortCalendar } from '../../support/short-calendar.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The lengths of each zone's days over two years that have passed, so that no law can change them. In hours. */
const ZONES: Readonly<Record<string, readonly number[]>> = {
  'Europe/Berlin': [23, 24, 25],
  'America/New_York': [23, 24, 25],
  'Australia/Sydney': [23, 24, 25],
  'Australia/Lord_Howe': [23.5, 24, 24.5],
  'Asia/Kathmandu': [24],
  'Pacific/Kiritimati': [24],
  'Pacific/Pago_Pago': [24],
  // The clock is put forward at midnight, so that the day has none, and back to an hour before midnight.
  'America/Santiago': [23, 24, 25],
  'Africa/Cairo': [23, 24, 25],
  'Asia/Beirut': [23, 24, 25],
  // The clock is put forward at midnight, and back to midnight.
  'America/Havana': [23, 24, 25],
};
const FROM = Date.UTC(2023, 11, 31);
const UNTIL = Date.UTC(2026, 0, 1);

/** By its name: where Node has Temporal, its errors are of another realm than jest's. */
const RANGE_ERROR = expect.objectContaining({ name: 'RangeError' }) as Error;

const iso = (time: number): string => new Date(time).toISOString();

/** Every window from `FROM` to `UNTIL`, each found at the end of the window before. */
function walk(unit: CalendarUnit, zone: string): readonly CalendarWindow[] {
  const calendar = new ZonedCalendar(unit, zone);
  const windows = [calendar.windowAt(FROM)];
  for (let end = windows[0]!.end; end < UNTIL; end = windows.at(-1)!.end) {
    const window = calendar.windowAt(end);
    if (window.end <= end) throw new Error(`no window of ${zone} holds ${iso(end)}`);
    windows.push(window);
  }
  return windows;
}

const WALKS = Object.keys(ZONES).flatMap((zone) =>
  CALENDAR_UNITS.map((unit) => ({ zone, unit, windows: walk(unit, zone) })),
);

/** Tells the local date of a time, by another account than Temporal's. */
function localDates(zone: string): (time: number) => string {
  // Sweden writes dates as ISO does.
  const format = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short' });
  return (time) => format.format(time);
}

/** The Monday of a date's week, both as `2024-02-29`. */
function mondayOf(date: string): string {
  const time = Date.parse(date);
  const daysSinceMonday = (new Date(time).getUTCDay() + 6) % 7;
  return new Date(time - daysSinceMonday * DAY).toISOString().slice(0, 10);
}

/** The first day that the calendar has for the unit that a date is in. */
const FIRST_DAY: Readonly<Record<CalendarUnit, (date: string) => string>> = {
  day: (date) => date,
  week: mondayOf,
  month: (date) => `${date.slice(0, 7)}-01`,
};

const hours = ({ start, end }: CalendarWindow): number => (end - start) / HOUR;
const windowAt = (unit: CalendarUnit, zone: string, time: string): CalendarWindow =>
  new ZonedCalendar(unit, zone).windowAt(Date.parse(time));

describe.each(WALKS)('each $unit of two years in $zone', ({ zone, unit, windows }) => {
  test('begins where the one before ends, and foresees the end of the next', () => {
    expect(windows.length).toBeGreaterThan(24);
    expect(windows.slice(1).map(({ start }) => start)).toEqual(
      windows.slice(0, -1).map(({ end }) => end),
    );
    expect(windows.slice(1).map(({ end }) => end)).toEqual(
      windows.slice(0, -1).map(({ nextEnd }) => nextEnd),
    );
  });

  test('begins and ends where the local date does', () => {
    const dateAt = localDates(zone);
    const firstDayAt = (time: number): string => FIRST_DAY[unit](dateAt(time));

    const wrong = windows.filter(
      ({ start, end }) =>
        dateAt(start) !== firstDayAt(start) ||
        firstDayAt(end - 1) !== dateAt(start) ||
        firstDayAt(start - 1) >= dateAt(start) ||
        firstDayAt(end) <= dateAt(start),
    );

    expect(wrong).toEqual([]);
  });
});

test('each instant is in the window of the walk, in whatever order the instants come', () => {
  const calendars = WALKS.map(({ unit, zone }) => new ZonedCalendar(unit, zone));
  const instant = fc.integer({ min: FROM, max: UNTIL - 1 });
  const moment = fc.constantFrom('instant', 'start', 'last');

  fc.assert(
    fc.property(fc.nat(WALKS.length - 1), instant, moment, (index, some, at) => {
      const window = WALKS[index]!.windows.find(({ start, end }) => start <= some && some < end)!;
      const now = { instant: some, start: window.start, last: window.end - 1 }[at];

      expect(calendars[index]!.windowAt(now)).toEqual(window);
    }),
    { numRuns: 500 },
  );
});

test.each(Object.entries(ZONES))('days in %s have the hours %j', (zone, lengths) => {
  const { windows } = WALKS.find((one) => one.zone === zone && one.unit === 'day')!;

  expect([...new Set(windows.map(hours))].sort()).toEqual(lengths);
});

test.each([
  ['2024-09-08', 'America/Santiago', '2024-09-08T04:00:00.000Z', 23],
  ['2024-04-06', 'America/Santiago', '2024-04-06T03:00:00.000Z', 25],
  ['2024-04-26', 'Africa/Cairo', '2024-04-25T22:00:00.000Z', 23],
  ['2022-03-27', 'Asia/Beirut', '2022-03-26T22:00:00.000Z', 23],
  ['2023-10-01', 'America/Asuncion', '2023-10-01T04:00:00.000Z', 23],
  ['2024-03-10', 'America/Havana', '2024-03-10T05:00:00.000Z', 23],
  // The clock shows midnight twice.
  ['2024-11-03', 'America/Havana', '2024-11-03T04:00:00.000Z', 25],
])('%s in %s begins at its first instant', (date, zone, start, length) => {
  const window = windowAt('day', zone, `${date}T12:00Z`);

  expect([iso(window.start), hours(window)]).toEqual([start, length]);
});

test('a day that was left out has no window', () => {
  // Samoa went from 29 to 31 December.
  const change = Date.parse('2011-12-30T10:00Z');
  const before = new ZonedCalendar('day', 'Pacific/Apia').windowAt(change - 1);
  const after = new ZonedCalendar('day', 'Pacific/Apia').windowAt(change);

  expect(before).toEqual({ start: change - DAY, end: change, nextEnd: change + DAY });
  expect(after).toEqual({ start: change, end: change + DAY, nextEnd: change + 2 * DAY });
});

test('a day that has begun goes on while the clock shows the day before again', () => {
  // At 00:01 the clock was put back to 23:01.
  const midnight = Date.parse('2010-11-07T02:30Z');
  const calendar = new ZonedCalendar('day', 'America/St_Johns');
  const day = { start: midnight, end: midnight + 25 * HOUR, nextEnd: midnight + 49 * HOUR };

  expect(calendar.windowAt(midnight - 1)).toMatchObject({ end: midnight, nextEnd: day.end });
  for (const minute of [0, 1, 30, 60, 61]) {
    const now = midnight + minute * 60_000;
    expect(new ZonedCalendar('day', 'America/St_Johns').windowAt(now)).toEqual(day);
  }
});

test('a part of a millisecond belongs to the window that has begun', () => {
  const calendar = new ZonedCalendar('day', 'UTC');

  expect(calendar.windowAt(2 * DAY - 0.001)).toEqual({
    start: DAY,
    end: 2 * DAY,
    nextEnd: 3 * DAY,
  });
});

test('a time zone that does not exist is an error', () => {
  expect(() => new ZonedCalendar('day', 'Europe/Berln')).toThrow(RANGE_ERROR);
});

test.each([NaN, Infinity, 8.65e15])('%d is not a time', (now) => {
  expect(() => new ZonedCalendar('day', 'UTC').windowAt(now)).toThrow(RANGE_ERROR);
});

test.each([
  ['Europe/Berlin', 'Europe/Berlin'],
  ['europe/berlin', 'Europe/Berlin'],
  ['AMERICA/PORT-AU-PRINCE', 'America/Port-au-Prince'],
  ['utc', 'UTC'],
  // Second names, and names that Node does not list.
  ['US/Eastern', 'US/Eastern'],
  ['Etc/GMT-14', 'Etc/GMT-14'],
  ['CET', 'CET'],
])('%s is the time zone %s', (text, name) => {
  expect(timeZoneNamed(text)).toBe(name);
});

test.each([
  '',
  'Berlin',
  'Europe/Berln',
  ' Europe/Berlin',
  'Europe/Berlin ',
  '+01:00',
  '-0100',
  // ICU knows the following, but IANA does not.
  'BST',
  'pst',
  'SystemV/PST8',
])('%p is not a time zone', (text) => {
  expect(timeZoneNamed(text)).toBeUndefined();
});

test.each([
  ['Europe/Berln', 'Europe/Berlin'],
  ['europe_berlin', 'Europe/Berlin'],
  ['Berlin', 'Europe/Berlin'],
  ['Nome', 'America/Nome'],
  ['new york', 'America/New_York'],
  ['Asia/Tokio', 'Asia/Tokyo'],
  ['UCT+0', 'UTC'],
])('the error for %s names %s', (text, name) => {
  expect(notATimeZone(text)).toBe(
    `must be a time zone such as Europe/Berlin; did you mean ${name}?`,
  );
});

test('every text has a nearest name', () => {
  for (const text of ['', '/', '+01:00', 'x'.repeat(1000), '__proto__', '東京']) {
    expect(notATimeZone(text)).toMatch(/; did you mean [\w/-]+\?$/);
  }
});

describe('the end of a window of a calendar', () => {
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
});
