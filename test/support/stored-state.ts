import type { Redis } from 'ioredis';

import type { Algorithm } from '../../src/limiter/kinds/kinds.js';
import { calendarOf, type LimitInForce } from '../../src/limiter/limits.js';
import { IDLE_WINDOWS } from '../../src/limiter/memory/limits/window.js';
import { limitsIn } from '../../src/redis/scripts/limits-codec.js';
import { type CalendarNamed, withCalendar } from './rules-in.js';
import { type FurtherLimit, furtherIn } from './further-limits.js';
import { KnownCalendar } from './known-calendar.js';
import {
  readCalendarWindow,
  readCounts,
  readReport,
  stepsOf,
  type StoredCounts,
  type StoredFields,
  type StoredReport,
} from './stored-counts.js';

/** A key's state, with defaults for fields that are not stored: docs/redis-names.md. Times are ms since 1970. */
export interface StoredState {
  readonly start: number;
  readonly window: number;
  readonly max: number;
  readonly queueMax: number;
  /** Of its own limit. A calendar is a `KnownCalendar`. */
  readonly algorithm: Algorithm;
  /** What its own limit stores besides `start` and `approved`; undefined if it has fixed windows. */
  readonly stored: StoredCounts | undefined;
  /** Of its own limit; undefined if none is in force. */
  readonly report: StoredReport | undefined;
  /** The maxima that requests have set. */
  readonly overridden: readonly ('window' | 'max' | 'queueMax')[];
  readonly approved: number;
  readonly denied: number;
  readonly gen: number;
  readonly born: number;
  /** Since when its limits are in force. */
  readonly limitsSince: number;
  readonly expires: number;
  /** 0 if no ticket was given out. */
  readonly ticket: number;
  /** 0 without a recovery. */
  readonly recoveryUntil: number;
  /** How often the recovery has begun again. */
  readonly recoveryAgain: number;
  readonly isUnsorted: boolean;
  readonly isServing: boolean;
  /** Whether approvals of the own limit may have other hits than one. */
  readonly hasHits: boolean;
  /** When an approval was last released or corrected downwards; 0 if none was. */
  readonly released: number;
  /** 0 if no waiter was served. */
  readonly served: number;
  /** When a lease or a pause was set last. */
  readonly setAt: number;
  /** Of all holds together; undefined if there is none. */
  readonly holds: StoredHolds | undefined;
  /** In the order of the rules. */
  readonly further: readonly StoredLimit[];
  /** Those that each group has to itself. What counts of them is stored apart. */
  readonly ofGroups: readonly FurtherLimit[];
  /** When the last of all groups will be idle; 0 if none has anything to itself. */
  readonly groupsUntil: number;
  /** Another one whenever the key gets limits of groups, or has none any more. */
  readonly groupsNumber: number;
  /** 0 if the key is not paused. */
  readonly pausedUntil: number;
  /** The length that a request has set for the next window; 0 if none has, or if the current window has it. */
  readonly nextWindow: number;
  /** Until when requests may be known whose callers have chosen their ids; 0 if none are. */
  readonly ends: number;
}

/** A further limit of a key. */
export interface StoredLimit extends FurtherLimit {
  /** When its window, or period, began. */
  readonly start: number;
  readonly taken: number;
  /** What it stores besides these; undefined if it has fixed windows. */
  readonly stored: StoredCounts | undefined;
  /** Undefined if none is in force. */
  readonly report: StoredReport | undefined;
}

/** What the state says of the holds of a key. */
export interface StoredHolds {
  /** The hits of all held approvals. */
  readonly held: number;
  /** No hold lapses before this time. */
  readonly firstLapse: number;
  /** No hold lapses after this time. */
  readonly lastLapse: number;
}

/** What tells when a window, or period, ends. */
type TimedWindow = Pick<StoredState, 'start' | 'window' | 'report'> & {
  readonly algorithm?: Algorithm | undefined;
};

/** How long a window, or period, is without a report. */
export function windowLength({ start, window, algorithm }: TimedWindow): number {
  const calendar = algorithm && calendarOf({ algorithm });
  return calendar ? calendar.windowAt(start).end - start : window;
}

/** When a window, or period, ends: not before a report that is in force. */
export function windowEnd(timed: TimedWindow): number {
  return Math.max(timed.start + windowLength(timed), timed.report?.until ?? 0);
}

/** The report about each limit, the own one first; undefined where none is in force. */
export function reportsOf({ report, further }: StoredState): (StoredReport | undefined)[] {
  return [report, ...further.map((limit) => limit.report)];
}

/** When a key is idle if nothing else comes: `stored.idle_time` in lua/lib/stored.lua. */
export function idleAt(
  state: Pick<StoredState, 'start' | 'window' | 'report' | 'algorithm' | 'further' | 'groupsUntil'>,
): number {
  const { window, further, groupsUntil } = state;
  const ends = windowEnd(state) + IDLE_WINDOWS * window;
  return Math.max(ends, groupsUntil, ...further.map(countsUntil));
}

/** Until when a further limit may count what was approved by now: `counts_until` of the kinds in lua/limits. */
function countsUntil({ start, windowMillis, algorithm, report }: StoredLimit): number {
  if (algorithm?.name === 'token_bucket') return start + 3 * windowMillis;
  if (algorithm?.name !== 'sliding_window') {
    return windowEnd({ start, window: windowMillis, report, algorithm });
  }
  const { stepMillis, steps } = stepsOf(windowMillis, algorithm);
  return start + windowMillis + (steps + 2) * stepMillis;
}

/** The limits in a key's state. */
export type StoredLimits = Pick<StoredState, 'window' | 'max' | 'queueMax' | 'overridden'>;

/** @returns undefined if the text does not hold limits, such as when there is no state */
export function readStoredLimits(text: string): StoredLimits | undefined {
  const [, window, windowMark, max, maxMark, queueMax, queueMark] =
    /^(\d+)(\*?):(\d+)(\*?):(\d+)(\*?)(?:,|$)/.exec(text) ?? [];
  if (window === undefined) return undefined;
  return {
    window: Number(window),
    max: Number(max),
    queueMax: Number(queueMax),
    overridden: [
      ...(windowMark ? (['window'] as const) : []),
      ...(maxMark ? (['max'] as const) : []),
      ...(queueMark ? (['queueMax'] as const) : []),
    ],
  };
}

/** The form of the state that the scripts write: docs/redis-names.md. */
const STATE_FORM = '2';

/**
 * Returns the text of the limits in the field `limits`, which has the form before it.
 * @throws Error if it has another form
 */
export function limitsStoredIn(field: string): string {
  const [form, limits] = field.split(' ');
  if (form !== STATE_FORM || limits === undefined) throw new Error(`another form: ${field}`);
  return limits;
}

/** The fields in `extra`, as JSON has them. */
export interface OptionalFields {
  readonly expires?: number;
  readonly own?: StoredFields;
  readonly further?: Readonly<Record<string, StoredFields & { start: number; used: number }>>;
  readonly ticket?: number;
  readonly wake?: number;
  readonly serving?: number;
  readonly served?: number;
  readonly unsorted?: number;
  readonly lists?: readonly string[];
  readonly virtual_time?: number;
  readonly hits?: number;
  readonly held?: number;
  readonly held_ids?: number;
  readonly first_lapse?: number;
  readonly last_lapse?: number;
  readonly lane_holds?: Readonly<Record<string, { hits: number; ids: number }>>;
  readonly ends?: number;
  readonly unclaimed?: number;
  readonly unclaimed_held?: number;
  readonly lapsed_unclaimed?: number;
  readonly paused_until?: number;
  readonly next_window?: number;
  readonly goes_on?: number;
  readonly groups_until?: number;
  readonly groups_number?: number;
  readonly recovery_until?: number;
  readonly max_holds?: number;
  readonly recovery_seen?: number;
  readonly recovery_again?: number;
  readonly set_at?: number;
}

/** Returns the fields in `queue`, `holds` and `extra` of these fields of a state. */
export function optionalFields(fields: Readonly<Record<string, string>>): OptionalFields {
  const read = (text = '{}'): object => JSON.parse(text) as object;
  return { ...read(fields.queue), ...read(fields.holds), ...read(fields.extra) };
}

/** The same of a key. */
export async function readOptionalFields(client: Redis, state: string): Promise<OptionalFields> {
  return optionalFields(await client.hgetall(state));
}

/** Gives a key other fields: all of them in `extra`, from where they are read as well. */
export async function writeOptionalFields(
  client: Redis,
  state: string,
  changes: OptionalFields,
): Promise<void> {
  const fields = { ...(await readOptionalFields(client, state)), ...changes };
  await client.hset(state, 'extra', JSON.stringify(fields));
}

/**
 * @param fields of HGETALL; undefined if there are none
 * @throws Error if they have another form
 */
export function readStoredState(fields: Readonly<Record<string, string>>): StoredState | undefined {
  if (fields.limits === undefined) return undefined;
  const ofLimits = limitsStoredIn(fields.limits);
  const limits = readStoredLimits(ofLimits);
  if (!limits) return undefined;
  const number = (name: string): number => Number(fields[name] ?? 0);
  const start = number('start');
  const extra = optionalFields(fields);
  const { further, ofGroups } = readFurther(ofLimits, extra.further ?? {});
  const groupsUntil = extra.groups_until ?? 0;
  const own = extra.own ?? (JSON.parse(fields.own ?? '{}') as StoredFields);
  const { algorithm } = withCalendar(
    limitsIn(ofLimits).limits[0],
    asStored(() => [start, own]),
  );
  const report = readReport(own);
  return {
    ...limits,
    algorithm,
    stored: readCounts(algorithm, own),
    report,
    start,
    approved: number('approved'),
    denied: number('denied'),
    gen: number('gen'),
    born: number('born'),
    limitsSince: number('changed') || number('born'),
    expires:
      extra.expires ??
      idleAt({ start, window: limits.window, report, algorithm, further, groupsUntil }),
    ticket: extra.ticket ?? 0,
    recoveryUntil: extra.recovery_until ?? 0,
    recoveryAgain: extra.recovery_again ?? 0,
    isUnsorted: extra.unsorted === 1,
    isServing: extra.serving === 1,
    hasHits: extra.hits === 1,
    released: number('released'),
    served: extra.served ?? 0,
    setAt: extra.set_at ?? 0,
    holds: readHolds(extra),
    further,
    ofGroups,
    groupsUntil,
    groupsNumber: extra.groups_number ?? 0,
    pausedUntil: extra.paused_until ?? 0,
    nextWindow: extra.next_window ?? 0,
    ends: extra.ends ?? 0,
  };
}

function readFurther(
  limits: string,
  stored: NonNullable<OptionalFields['further']>,
): Pick<StoredState, 'further' | 'ofGroups'> {
  const fieldsOf = (name: string | undefined) => stored[name ?? ''] ?? { start: 0, used: 0 };
  const calendarNamed = asStored(({ name }) => {
    const fields = fieldsOf(name);
    return [fields.start, fields];
  });
  const all = furtherIn(limits, calendarNamed);
  const further = all
    .filter(({ perGroup }) => !perGroup)
    .map((limit) => {
      const fields = fieldsOf(limit.name);
      return {
        ...limit,
        start: fields.start,
        taken: fields.used,
        stored: readCounts(limit.algorithm, fields),
        report: readReport(fields),
      };
    });
  return { further, ofGroups: all.filter(({ perGroup }) => perGroup) };
}

/** @param valuesOf the start of the window of a limit, and what its kind stores */
function asStored(
  valuesOf: (limit: LimitInForce) => readonly [number, StoredFields],
): CalendarNamed {
  return (name, limit) =>
    new KnownCalendar(name, limit.windowMillis, readCalendarWindow(...valuesOf(limit)));
}

function readHolds({
  held = 0,
  first_lapse: firstLapse,
  last_lapse: lastLapse = firstLapse ?? 0,
}: OptionalFields): StoredHolds | undefined {
  return firstLapse === undefined ? undefined : { held, firstLapse, lastLapse };
}
