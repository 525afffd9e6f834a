import type { Calendar, CalendarName } from '../../src/limiter/calendar/calendar.js';
import type { KeyLimits } from '../../src/limiter/limiter.js';
import {
  calendarOf,
  forEachLimit,
  type Limit,
  type LimitInForce,
} from '../../src/limiter/limits.js';
import { limitsIn } from '../../src/redis/scripts/limits-codec.js';

/** Returns the calendar that a limit has, of which a text has only the name. */
export type CalendarNamed = (name: CalendarName, limit: LimitInForce) => Calendar;

/**
 * Returns the limits in a text of `encodeLimits` or `encodeRules`, as rules. Those that each group has to itself come last.
 * @throws Error for a calendar, unless the caller says which it is
 */
export function rulesIn(text: string, calendarNamed?: CalendarNamed): KeyLimits {
  const { limits, limitsOfGroups, maxRequestsInQueue } = limitsIn(text.split('@')[0]!);
  return {
    limits: forEachLimit([...limits, ...limitsOfGroups], (limit) =>
      withCalendar(limit, calendarNamed),
    ),
    maxRequestsInQueue,
  };
}

/**
 * Returns a limit with its calendar instead of the name of that.
 * @throws Error for a calendar, unless the caller says which it is
 */
export function withCalendar(
  limit: LimitInForce,
  calendarNamed: CalendarNamed = unknownCalendar,
): Limit {
  const calendar = calendarOf(limit);
  return {
    ...limit,
    algorithm: calendar
      ? { name: 'fixed_window', calendar: calendarNamed(calendar, limit) }
      : (limit.algorithm as Limit['algorithm']),
  };
}

function unknownCalendar({ timeZone }: CalendarName): Calendar {
  throw new Error(`a calendar in a text of limits: ${timeZone}`);
}
