import type { CalendarName } from '../../../src/limiter/calendar/calendar.js';
import type { Algorithm } from '../../../src/limiter/kinds/kinds.js';
import { calendarOf } from '../../../src/limiter/limits.js';
import type { Random } from '../chaos/random.js';
import { encodeFurther } from '../further-limits.js';
import type { DeclaredLimits, FurtherLimit } from '../limits.js';
import { ShortCalendar } from '../short-calendar.js';

/** Of the days of a calendar, which have 23 to 25 of them, in ms: days are about as long as other windows. */
const PARTS = [1, 3, 10, 20, 40, 150] as const;

const ZONE = /^Short\/(\d+)\/(\d+)$/;

export function drawCalendar(random: Random): ShortCalendar {
  const part = random.pick(PARTS);
  return calendarNamed({
    unit: 'day',
    timeZone: `Short/${part}/${random.whole(0, 72 * part - 1)}`,
  });
}

/**
 * Returns the calendar of a time zone `Short/<length of a part>/<when a day of 24 parts begins>`, both in ms.
 * @throws Error for another name
 */
export function calendarNamed({ timeZone }: CalendarName): ShortCalendar {
  const [, part, from] = ZONE.exec(timeZone) ?? [];
  if (from === undefined) throw new Error(`no short calendar: ${timeZone}`);
  return new ShortCalendar(timeZone, Number(from), Number(part));
}

/** The length of windows by rules. A calendar has the length of its longest day. */
export function windowByRules(algorithm: Algorithm | undefined, windowMillis: number): number {
  const calendar = algorithm && calendarOf({ algorithm });
  return calendar instanceof ShortCalendar ? calendar.longestMillis : windowMillis;
}

/** The same limits, of which those with a calendar have the length of its longest day. */
export function withWindowsByRules<
  Limits extends Omit<DeclaredLimits, 'maxRequests' | 'maxRequestsInQueue'>,
>(limits: Limits): Limits {
  const { algorithm, windowMillis, further = [] } = limits;
  return {
    ...limits,
    windowMillis: windowByRules(algorithm, windowMillis),
    further: further.map((limit) => ({
      ...limit,
      windowMillis: windowByRules(limit.algorithm, limit.windowMillis),
    })),
  };
}

/** How long three windows in a row are, of this length by rules. */
export function threeWindows(algorithm: Algorithm | undefined, windowMillis: number): number {
  const calendar = algorithm && calendarOf({ algorithm });
  return calendar instanceof ShortCalendar ? calendar.threeDaysMillis : 3 * windowMillis;
}

/** Whether a key with these limits has a calendar. */
export function haveCalendar({
  algorithm,
  further = [],
}: Pick<DeclaredLimits, 'algorithm' | 'further'>): boolean {
  return [algorithm, ...further.map((limit) => limit.algorithm)].some(
    (each) => each && calendarOf({ algorithm: each }) !== undefined,
  );
}

/** Whether further limits are the same, with calendars of the same names. */
export function areSameFurther(
  one: readonly FurtherLimit[],
  other: readonly FurtherLimit[],
): boolean {
  return encodeFurther(one) === encodeFurther(other);
}
