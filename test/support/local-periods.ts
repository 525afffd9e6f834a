import type { CalendarUnit } from '../../src/limiter/calendar/calendar.js';

const DAY = 86_400_000;

/** Tells the day, week or month of a time zone that a time is in, by Intl instead of Temporal: its first day. */
export function localPeriods(unit: CalendarUnit, timeZone: string): (time: number) => string {
  // Sweden writes dates as ISO does.
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' });
  return (time) => {
    const date = format.format(time);
    if (unit === 'day') return date;
    return unit === 'month' ? date.slice(0, 7) : mondayOf(date);
  };
}

/** The Monday of a date's week, both as `2024-02-29`. */
function mondayOf(date: string): string {
  const time = Date.parse(date);
  const daysSinceMonday = (new Date(time).getUTCDay() + 6) % 7;
  return new Date(time - daysSinceMonday * DAY).toISOString().slice(0, 10);
}
