import { z } from 'zod';

import { CALENDAR_UNITS, NOMINAL_MILLIS } from '../limiter/calendar/calendar.js';
import { type CalendarOf, notATimeZone, timeZoneNamed } from '../limiter/calendar/time-zones.js';
import {
  type Algorithm,
  ALGORITHM_NAMES,
  algorithmOf,
  DEFAULT_ALGORITHM,
  forEachParameter,
  PARAMETERS,
} from '../limiter/kinds/kinds.js';
import { text, wholeNumber } from './field-schemas.js';

/** The fields that say how the approvals of a limit count. They are one unit: a later rule replaces all of them. */
export const ALGORITHM_FIELDS = {
  algorithm: z
    .enum(ALGORITHM_NAMES, { error: `must be one of ${ALGORITHM_NAMES.join(', ')}` })
    .optional(),
  ...forEachParameter('field', ({ bounds }) => wholeNumber(bounds).optional()),
  /** Fixed windows that are days, weeks or months. */
  calendar: z
    .enum(CALENDAR_UNITS, { error: `must be one of ${CALENDAR_UNITS.join(', ')}` })
    .optional(),
  /** An IANA name, in the spelling of Node's list. */
  time_zone: text()
    .refine((name) => timeZoneNamed(name) !== undefined, {
      error: ({ input }) => notATimeZone(String(input)),
    })
    .transform((name) => timeZoneNamed(name))
    .optional(),
};

const DEFAULT_TIME_ZONE = 'UTC';

const MAXIMA = ['max_requests_per_window', 'max_hits_per_window'] as const;

type WithAlgorithm = Partial<z.infer<z.ZodObject<typeof ALGORITHM_FIELDS>>> &
  Readonly<Partial<Record<(typeof MAXIMA)[number] | 'window_millis', number | undefined>>>;

/** A check for a schema: adds an issue for a field that does not go with the algorithm or the maximum beside it. */
export function checkAlgorithmFields({ value, issues }: z.core.ParsePayload<WithAlgorithm>): void {
  const reject = (field: keyof WithAlgorithm, message: string): void => {
    issues.push({ code: 'custom', path: [field], message, input: value });
  };
  const { algorithm, calendar } = value;
  const ofCalendar = DEFAULT_ALGORITHM.name;
  if (calendar !== undefined && value.window_millis !== undefined) {
    reject('calendar', 'must not have window_millis beside it');
  }
  if (calendar !== undefined && algorithm !== undefined && algorithm !== ofCalendar) {
    reject('calendar', `must have algorithm: ${ofCalendar} beside it, or none, not ${algorithm}`);
  }
  if (value.time_zone !== undefined && calendar === undefined) {
    reject('time_zone', 'must have calendar beside it');
  }
  const instead = algorithm === undefined ? 'beside it' : `beside it, not ${algorithm}`;
  const maximum = MAXIMA.find((field) => value[field] !== undefined);
  const most = (maximum && value[maximum]) ?? Infinity;
  for (const { field, algorithm: taker, isAtMostMaximum } of PARAMETERS) {
    const { [field]: given } = value;
    if (given === undefined) continue;
    if (algorithm !== taker) reject(field, `must have algorithm: ${taker} ${instead}`);
    if (isAtMostMaximum && given > most) {
      reject(field, `must be at most ${maximum}, ${most}, not ${given}`);
    }
  }
}

/** How the approvals of a limit count, and the length of its windows, as far as that follows. */
interface DeclaredKind {
  readonly algorithm: Algorithm;
  readonly windowMillis?: number;
}

/** Returns what a rule or one of its limits says of its algorithm; undefined if it names neither that nor a calendar. */
export function kindIn(
  { algorithm, calendar, time_zone: zone = DEFAULT_TIME_ZONE, ...parameters }: WithAlgorithm,
  calendarOf: CalendarOf,
): DeclaredKind | undefined {
  if (calendar) {
    return {
      algorithm: { ...DEFAULT_ALGORITHM, calendar: calendarOf(calendar, zone) },
      windowMillis: NOMINAL_MILLIS[calendar],
    };
  }
  return algorithm && { algorithm: algorithmOf(algorithm, parameters) };
}
