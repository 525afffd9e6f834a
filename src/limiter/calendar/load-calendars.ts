import type { Calendar, CalendarUnit } from './calendar.js';

/**
 * Returns the calendar of a unit and a time zone: the same object for the same two.
 * @throws RangeError if the time zone is unknown
 */
export type CalendarOf = (unit: CalendarUnit, timeZone: string) => Calendar;

/** Loads the library that knows the rules of time zones. */
export async function loadCalendars(): Promise<CalendarOf> {
  const { ZonedCalendar } = await import('./zoned-calendar.js');
  const calendars = new Map<string, Calendar>();
  return (unit, timeZone) => {
    const name = `${unit} ${timeZone}`;
    const known = calendars.get(name) ?? new ZonedCalendar(unit, timeZone);
    calendars.set(name, known);
    return known;
  };
}
