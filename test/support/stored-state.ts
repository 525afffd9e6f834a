import { type Algorithm, calendarOf, type LimitInForce } from '../../src/limiter/limits.js';
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
  type StoredReport,
} from './stored-counts.js';

/** A key's state, with defaults for fields that are not stored: docs/redis.md. Times are ms since 1970. */
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
  readonly turn: number;
  readonly born: number;
  /** Since when its limits are in force. */
  readonly limitsSince: number;
  readonly expires: number;
  /** 0 if no ticket was given out. */
  readonly ticket: number;
  /** 0 if the key is not held. */
  readonly holdUntil: number;
  /** How often the recovery hold has begun again. */
  readonly holdAgain: number;
  readonly isUnsorted: boolean;
  readonly isServing: boolean;
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
  /** 0 if the key is not paused. */
  readonly pausedUntil: number;
  /** The length that a request has set for the next window; 0 if none has, or if the current window has it. */
  readonly nextWindow: number;
  /** Until when requests may be known whose callers have chosen their ids; 0 if none are. */
  readonly named: number;
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
  state: Pick<StoredState, 'start' | 'window' | 'report' | 'algorithm' | 'further'>,
): number {
  const { window, further } = state;
  return Math.max(windowEnd(state) + IDLE_WINDOWS * window, ...further.map(countsUntil));
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

/** @param fields of HGETALL; undefined if there are none */
export function readStoredState(fields: Readonly<Record<string, string>>): StoredState | undefined {
  const limits = readStoredLimits(fields.limits ?? '');
  if (!limits) return undefined;
  const number = (name: string): number => Number(fields[name] ?? 0);
  const start = number('start');
  const further = readFurther(fields.limits ?? '', fields.further ?? '');
  const { own = '0' } = fields;
  const { algorithm } = withCalendar(
    limitsIn(fields.limits ?? '').limits[0],
    asStored(() => [start, own]),
  );
  const report = readReport(algorithm, own);
  return {
    ...limits,
    algorithm,
    stored: readCounts(algorithm, own),
    report,
    start,
    approved: number('approved'),
    denied: number('denied'),
    turn: number('turn'),
    born: number('born'),
    limitsSince: number('changed') || number('born'),
    expires:
      number('expires') || idleAt({ start, window: limits.window, report, algorithm, further }),
    ticket: number('ticket'),
    holdUntil: number('hold_until'),
    holdAgain: number('hold_again'),
    isUnsorted: number('unsorted') === 1,
    isServing: number('serving') === 1,
    released: number('released'),
    served: number('served'),
    setAt: number('set_at'),
    holds: readHolds(fields.holds ?? '0'),
    further,
    pausedUntil: number('paused_until'),
    nextWindow: number('next_window'),
    named: number('named'),
  };
}

function readFurther(limits: string, field: string): StoredLimit[] {
  const valuesOf = (name: string | undefined): readonly [number, number, string] => {
    const [, start, taken, counts = ''] =
      new RegExp(`(?:^|,)${name}=(\\d+):(\\d+):?([^,]*)`).exec(field) ?? [];
    return [Number(start), Number(taken), counts];
  };
  const calendarNamed = asStored(({ name }) => {
    const [start, , counts] = valuesOf(name);
    return [start, counts];
  });
  return furtherIn(limits, calendarNamed).map((limit) => {
    const [start, taken, counts] = valuesOf(limit.name);
    const stored = readCounts(limit.algorithm, counts);
    const report = readReport(limit.algorithm, counts);
    return { ...limit, start, taken, stored, report };
  });
}

/** @param valuesOf the start of the window of a limit, and what its kind stores */
function asStored(valuesOf: (limit: LimitInForce) => readonly [number, string]): CalendarNamed {
  return (name, limit) =>
    new KnownCalendar(name, limit.windowMillis, readCalendarWindow(...valuesOf(limit)));
}

function readHolds(text: string): StoredHolds | undefined {
  const [held = 0, , firstLapse = 0, lastLapse = 0] = text.split(':').map(Number);
  return firstLapse === 0 ? undefined : { held, firstLapse, lastLapse };
}
