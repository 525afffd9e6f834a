import { z } from 'zod';

import { BOUNDS } from '../limiter/bounds.js';
import { CALENDAR_UNITS, NOMINAL_MILLIS } from '../limiter/calendar/calendar.js';
import { type CalendarOf, notATimeZone, timeZoneNamed } from '../limiter/calendar/time-zones.js';
import {
  type Algorithm,
  ALGORITHM_NAMES,
  type AlgorithmName,
  DEFAULT_ALGORITHM,
} from '../limiter/kinds/kinds.js';
import { DEFAULT_STEPS } from '../limiter/kinds/sliding-window.js';
import { DEFAULT_BURST } from '../limiter/kinds/token-bucket.js';
import { text, wholeNumber } from './field-schemas.js';

/** The fields that say how the approvals of a limit count. They are one unit: a later rule replaces all of them. */
export const ALGORITHM_FIELDS = {
  algorithm: z
    .enum(ALGORITHM_NAMES, { error: `must be one of ${ALGORITHM_NAMES.join(', ')}` })
    .optional(),
  steps: wholeNumber(BOUNDS.steps).optional(),
  burst: wholeNumber(BOUNDS.burst).optional(),
  /** Fixed windows that are days, weeks or months. */
  calendar: z
    .enum(CALENDAR_UNITS, { error: `must be one of ${CALENDAR_UNITS.join(', ')}` })
    .optional(),
  /** An IANA name, in the spelling of Node's list. */
  time_zone: text()
    .transform((text, { issues }) => {
      const name = timeZoneNamed(text);
      if (name === undefined) {
        issues.push({ code: 'custom', message: notATimeZone(text), input: text });
        return z.NEVER;
      }
      return name;
    })
    .optional(),
};

const DEFAULT_TIME_ZONE = 'UTC';

const MAXIMA = ['max_requests_per_window', 'max_hits_per_window'] as const;

type WithAlgorithm = Partial<z.infer<z.ZodObject<typeof ALGORITHM_FIELDS>>> &
  Readonly<Partial<Record<(typeof MAXIMA)[number] | 'window_millis', number | undefined>>>;

/** A check for a schema: adds an issue for a field that does not go with the algorithm or the maximum beside it. */
export function checkAlgorithmFields({ value, issues }: z.core.ParsePayload<WithAlgorithm>): void {
  const reject = (field: 'steps' | 'burst' | 'calendar' | 'time_zone', message: string): void => {
    issues.push({ code: 'custom', path: [field], message, input: value });
  };
  const { algorithm, steps, burst, calendar } = value;
  if (calendar !== undefined && value.window_millis !== undefined) {
    reject('calendar', 'must not have window_millis beside it');
  }
  if (calendar !== undefined && algorithm !== undefined && algorithm !== 'fixed_window') {
    reject('calendar', `must have algorithm: fixed_window beside it, or none, not ${algorithm}`);
  }
  if (value.time_zone !== undefined && calendar === undefined) {
    reject('time_zone', 'must have calendar beside it');
  }
  const instead = algorithm === undefined ? 'beside it' : `beside it, not ${algorithm}`;
  if (steps !== undefined && algorithm !== 'sliding_window') {
    reject('steps', `must have algorithm: sliding_window ${instead}`);
  }
  if (burst === undefined) return;
  if (algorithm !== 'token_bucket') reject('burst', `must have algorithm: token_bucket ${instead}`);
  const maximum = MAXIMA.find((field) => value[field] !== undefined);
  const most = maximum === undefined ? undefined : value[maximum];
  if (most !== undefined && burst > most) {
    reject('burst', `must be at most ${maximum}, ${most}, not ${burst}`);
  }
}

/** How the approvals of a limit count, and the length of its windows, as far as that follows. */
interface DeclaredKind {
  readonly algorithm: Algorithm;
  readonly windowMillis?: number;
}

/** Returns what a rule or one of its limits says of its algorithm; undefined if it names neither that nor a calendar. */
export function kindIn(
  { algorithm, steps, burst, calendar, time_zone: zone = DEFAULT_TIME_ZONE }: WithAlgorithm,
  calendarOf: CalendarOf,
): DeclaredKind | undefined {
  if (calendar) {
    return {
      algorithm: { name: 'fixed_window', calendar: calendarOf(calendar, zone) },
      windowMillis: NOMINAL_MILLIS[calendar],
    };
  }
  return algorithm && { algorithm: algorithmOf(algorithm, { steps, burst }) };
}

/** Returns the algorithm of a name. Numbers that it does not have are ignored. */
export function algorithmOf(
  name: AlgorithmName,
  {
    steps = DEFAULT_STEPS,
    burst = DEFAULT_BURST,
  }: { readonly steps?: number | undefined; readonly burst?: number | undefined },
): Algorithm {
  switch (name) {
    case 'fixed_window':
      return DEFAULT_ALGORITHM;
    case 'sliding_window':
      return { name, steps };
    case 'token_bucket':
      return { name, burst };
  }
}
