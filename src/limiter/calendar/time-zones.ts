import { nearestName } from '../../common/texts.js';
import type { Calendar, CalendarUnit } from './calendar.js';

const UTC = 'UTC';

/** By the name in lower case. Made once: Node takes 0.2 ms to list the names, and thousands of rules may have one. */
let listed: ReadonlyMap<string, string> | undefined;

/**
 * Node takes these texts too, which ICU knows and IANA does not. ICU's `BST` is Bangladesh's time, and not Britain's.
 * Temporal rejects the abbreviations for the same reason.
 */
const ONLY_OF_ICU =
  /^((AC|AE|AG|AR|AS|BE|BS|CA|CN|CS|CT|EA|EC|IE|IS|JS|MI|NE|NS|PL|PN|PR|PS|SS|VS)T|SystemV\/.*)$/i;
/** An offset, such as `+01:00`. Node takes one since version 22. */
const OFFSET = /^[+-]/;

/**
 * Returns the IANA name that a text means, whatever the case of its letters, in the spelling of Node's list. A name that
 * Node does not list, such as `Asia/Kolkata`, is returned as given: which of two names of a zone is in the list differs
 * between versions of Node, and so between replicas.
 * @returns undefined if this process knows no such time zone
 */
export function timeZoneNamed(text: string): string | undefined {
  return listedNames().get(text.toLowerCase()) ?? (isKnown(text) ? text : undefined);
}

/** The message for a text that is not a time zone, for the end of a sentence. It names the nearest time zone. */
export function notATimeZone(text: string): string {
  return `must be a time zone such as Europe/Berlin; did you mean ${nearestTimeZone(text)}?`;
}

/** The time zone whose name, or whose city, is most like a text. */
function nearestTimeZone(text: string): string {
  const names = [...listedNames().values()];
  const byCity = new Map(names.map((name) => [cityOf(name), name]));
  const nearest = nearestName(text, [...names, ...byCity.keys()]) ?? UTC;
  return byCity.get(nearest) ?? nearest;
}

function cityOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** The names of Node's list, which lacks UTC in some versions. */
function listedNames(): ReadonlyMap<string, string> {
  listed ??= new Map(
    [...Intl.supportedValuesOf('timeZone'), UTC].map((name) => [name.toLowerCase(), name]),
  );
  return listed;
}

function isKnown(text: string): boolean {
  if (ONLY_OF_ICU.test(text) || OFFSET.test(text)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: text });
    return true;
  } catch {
    return false;
  }
}

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
