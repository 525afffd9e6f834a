import {
  type Calendar,
  CALENDAR_UNITS,
  type CalendarName,
  NOMINAL_MILLIS,
} from '../calendar/calendar.js';
import type { Kind } from './kind.js';

/**
 * Approvals count until their window ends, which is a day, week or month of its `calendar`, if it has one. Up to twice the
 * maximum may pass around its end.
 */
export interface FixedWindowAlgorithm<Named extends CalendarName = Calendar> {
  readonly name: 'fixed_window';
  readonly calendar?: Named | undefined;
}

export const fixedWindow = {
  hasBoundary: true,
  hasPace: false,
  storedNames: 1,
  hasSettableWindow: ({ calendar }) => calendar === undefined,
  capacity: (_, maximum) => maximum,
  // A change of the clock makes a day longer.
  longestCountMillis: ({ calendar }, windowMillis) =>
    calendar ? windowMillis + NOMINAL_MILLIS.day : windowMillis,
  parameter: undefined,
  describe: ({ name, calendar }) =>
    calendar ? `calendar ${calendar.unit}, ${calendar.timeZone}` : name,
  shown: ({ calendar }): Readonly<Record<string, string>> =>
    calendar ? { Calendar: calendar.unit, TimeZone: calendar.timeZone } : {},
  toStored: ({ calendar }) => calendar && ['calendar', calendarText(calendar)],
  ofStored: { calendar: (text) => ({ name: 'fixed_window', calendar: calendarIn(text) }) },
} satisfies Kind<FixedWindowAlgorithm<CalendarName>>;

/** A calendar in the store. No name of a time zone has a `.`, and the limits of a key must not have a `/` in a call of checks. */
export function calendarText({ unit, timeZone }: CalendarName): string {
  return `${unit}.${timeZone.replaceAll('/', '.')}`;
}

function calendarIn(text: string): CalendarName | undefined {
  const unit = CALENDAR_UNITS.find((each) => text.startsWith(`${each}.`));
  return unit && { unit, timeZone: text.slice(unit.length + 1).replaceAll('.', '/') };
}
