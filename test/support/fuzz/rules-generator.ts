import { ALGORITHM_NAMES } from '../../../src/limiter/algorithms.js';
import { CALENDAR_UNITS, type CalendarUnit } from '../../../src/limiter/calendar/calendar.js';
import type { Random } from '../chaos/random.js';

/** Time zones as rules may write them, and as the service shows them. */
const TIME_ZONES = new Map([
  ['UTC', 'UTC'],
  ['utc', 'UTC'],
  ['Europe/Berlin', 'Europe/Berlin'],
  ['europe/BERLIN', 'Europe/Berlin'],
  ['America/St_Johns', 'America/St_Johns'],
  ['America/Argentina/Buenos_Aires', 'America/Argentina/Buenos_Aires'],
  ['Pacific/Kiritimati', 'Pacific/Kiritimati'],
]);
const NO_TIME_ZONES = [
  '', ' ', ' UTC', 'Mars/Olympus', 'Europe/Berlim', 'Europe', 'PST', '+05:17', '-00:00', 'Europe/Berlin\0', '../UTC', 'é',
  'x'.repeat(200), 5, null, true, ['UTC'], { zone: 'UTC' },
]; // prettier-ignore
const NO_UNITS = ['', 'year', 'Day', 'days', 'day ', 1, null, false, ['day'], { unit: 'day' }];
const MAXIMUM = 5;

/** A rule for one key, and what follows from it. */
export interface DrawnRule {
  readonly rule: object;
  /** Whether a file with the rule is valid. */
  readonly isValid: boolean;
  /** Whether its fields are those of a further limit, and not of the key's own. */
  readonly isFurther: boolean;
  /** As the service shows it, if the rule is valid and has one. */
  readonly calendar: { readonly unit: CalendarUnit; readonly timeZone: string } | undefined;
}

type Fields = Readonly<
  Partial<
    Record<'calendar' | 'time_zone' | 'algorithm' | 'steps' | 'burst' | 'window_millis', unknown>
  >
>;

/** Draws a rule with a calendar, or with a combination of fields that means nothing. */
export function drawRule(random: Random, key: string): DrawnRule {
  const isFurther = random.chance(0.5);
  const drawn = {
    calendar: random.chance(0.9) ? pickRight(random, CALENDAR_UNITS, NO_UNITS) : undefined,
    time_zone: random.chance(0.6)
      ? pickRight(random, [...TIME_ZONES.keys()], NO_TIME_ZONES)
      : undefined,
    algorithm: random.chance(0.2) ? random.pick(ALGORITHM_NAMES) : undefined,
    steps: random.chance(0.1) ? 5 : undefined,
    burst: random.chance(0.1) ? 2 : undefined,
    window_millis: random.chance(0.2) ? 3_600_000 : undefined,
  };
  const fields: Fields = Object.fromEntries(
    Object.entries(drawn).filter(([, value]) => value !== undefined),
  );
  const ofLimit = { ...fields, max_requests_per_window: MAXIMUM };
  const { calendar, time_zone: zone = 'UTC' } = fields;
  const unit = CALENDAR_UNITS.find((each) => each === calendar);
  const timeZone = typeof zone === 'string' ? TIME_ZONES.get(zone) : undefined;
  return {
    rule: {
      key_pattern: key,
      ...(isFurther ? { limits: [{ name: 'drawn', ...ofLimit }] } : ofLimit),
    },
    isValid: 'calendar' in fields ? isCalendar(fields) : isOther(fields, isFurther),
    isFurther,
    calendar: unit && timeZone !== undefined ? { unit, timeZone } : undefined,
  };
}

function pickRight(random: Random, right: readonly unknown[], wrong: readonly unknown[]): unknown {
  return random.pick(random.chance(0.8) ? right : wrong);
}

/** Whether fields with a calendar are valid. It goes with a time zone and with `algorithm: fixed_window`, and with nothing else. */
function isCalendar({ calendar, time_zone: zone = 'UTC', algorithm, ...others }: Fields): boolean {
  const isUnit = CALENDAR_UNITS.some((unit) => unit === calendar);
  const isZone = typeof zone === 'string' && TIME_ZONES.has(zone);
  const isFixed = algorithm === undefined || algorithm === 'fixed_window';
  return isUnit && isZone && isFixed && Object.keys(others).length === 0;
}

function isOther(fields: Fields, isFurther: boolean): boolean {
  const { algorithm } = fields;
  if ('time_zone' in fields || (isFurther && !('window_millis' in fields))) return false;
  if ('steps' in fields && algorithm !== 'sliding_window') return false;
  return !('burst' in fields) || algorithm === 'token_bucket';
}
