import { fileURLToPath } from 'node:url';

import type {
  CalendarName,
  CalendarUnit,
  CalendarWindow,
} from '../../../../src/limiter/calendar/calendar.js';
import { ShortCalendar } from '../../short-calendar.js';

/** When the time zones that rules have begin a period, in milliseconds since 1970: each at another time. */
const BEGINNINGS = {
  UTC: 0,
  'Europe/Berlin': 410,
  'America/Argentina/Buenos_Aires': 790,
  'Asia/Kathmandu': 1130,
} as const;
export const TIME_ZONES = Object.keys(BEGINNINGS);

/** The parts of the longest period. */
const MOST_PARTS = 25;
/**
 * The length of one part, in milliseconds. The shortest period is longer than the second in which a midnight's waiters are
 * served.
 */
const PART_MILLIS: Readonly<Record<CalendarUnit, number>> = { day: 50, week: 60, month: 70 };

/** The length of the longest period of each unit, in milliseconds. */
export const LONGEST_MILLIS: Readonly<Record<CalendarUnit, number>> = {
  day: MOST_PARTS * PART_MILLIS.day,
  week: MOST_PARTS * PART_MILLIS.week,
  month: MOST_PARTS * PART_MILLIS.month,
};

/** The file that makes the calendars of a replica short, for `--import`. It takes what is in {@link SHORT_CALENDARS}. */
export const SHORTEN_CALENDARS = fileURLToPath(new URL('../short-calendars.mjs', import.meta.url));

/** For the environment of replicas. */
export const SHORT_CALENDARS = {
  CHAOS_CALENDARS: JSON.stringify({ partMillis: PART_MILLIS, from: BEGINNINGS }),
};

/** Returns the period of a replica's calendar that holds a time. All times are milliseconds since 1970. */
export function periodAt({ unit, timeZone }: CalendarName, time: number): CalendarWindow {
  const from = BEGINNINGS[timeZone as keyof typeof BEGINNINGS];
  return new ShortCalendar(timeZone, from, PART_MILLIS[unit]).windowAt(time);
}
