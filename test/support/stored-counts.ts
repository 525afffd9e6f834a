import type { CalendarWindow } from '../../src/limiter/calendar/calendar.js';
import type { Algorithm, NamedAlgorithm } from '../../src/limiter/limits.js';

/**
 * What a limit stores of what counts, other than its window or period and what its approvals take together. The kinds
 * in lua/limits write it with `format`. Times are ms since 1970, those of a bucket µs.
 */
export type StoredCounts = StoredSteps | StoredLevel;

/** Of a sliding window. */
export interface StoredSteps {
  readonly kind: 'sliding_window';
  /** When the current step began, and its number. */
  readonly stepStart: number;
  readonly number: number;
  /** What the approvals of each step take, by its number. */
  readonly sums: ReadonlyMap<number, number>;
}

/** Of a token bucket. */
export interface StoredLevel {
  readonly kind: 'token_bucket';
  readonly level: number;
  readonly timeMicros: number;
  readonly generation: number;
  /** Since when the pace is the same. */
  readonly paceSinceMicros: number;
  /** A higher maximum that was in force before, and how much higher the level would be with that; 0 if there is none. */
  readonly highMaximum: number;
  readonly excess: number;
}

/** What a fixed window stores of a vendor's report that is in force. */
export interface StoredReport {
  /** What counts besides the approvals. */
  readonly surplus: number;
  /** What counts at least. */
  readonly floor: number;
  /** When the report ends, in ms since 1970. */
  readonly until: number;
}

/**
 * @returns undefined without a report, which only a fixed window has
 * @throws Error if the text is none of a fixed window
 */
export function readReport(
  algorithm: NamedAlgorithm | undefined,
  text: string,
): StoredReport | undefined {
  if (text === '' || (algorithm && algorithm.name !== 'fixed_window')) return undefined;
  const isOfCalendar = algorithm?.calendar !== undefined;
  const values = isOfCalendar ? text.split(':').slice(2).join(':') : text;
  if (isOfCalendar && values === '') return undefined;
  const [all, surplus, floor, until] = /^\d+(?::(\d+):(\d+):(\d+))?$/.exec(values) ?? [];
  if (all === undefined) throw new Error(`no fixed window: ${text}`);
  if (surplus === undefined) return undefined;
  return { surplus: Number(surplus), floor: Number(floor), until: Number(until) };
}

/**
 * Returns the window of a calendar that a limit has, with the end of the next one.
 * @throws Error if the text has no window of a calendar
 */
export function readCalendarWindow(start: number, text: string): CalendarWindow {
  const [, end, nextEnd] = /^(\d+):(\d+)(?::|$)/.exec(text) ?? [];
  if (nextEnd === undefined) throw new Error(`no window of a calendar: ${text}`);
  return { start, end: Number(end), nextEnd: Number(nextEnd) };
}

/**
 * @returns undefined for a fixed window
 * @throws Error if the text is none of the algorithm
 */
export function readCounts(
  algorithm: Algorithm | undefined,
  text: string,
): StoredCounts | undefined {
  if (algorithm?.name === 'sliding_window') return readSteps(text);
  if (algorithm?.name === 'token_bucket') return readLevel(text);
  return undefined;
}

function readSteps(text: string): StoredSteps {
  const [, stepStart, last, sums = ''] = /^(\d+):(\d+):([\d*;]*)$/.exec(text) ?? [];
  if (last === undefined) throw new Error(`no sliding window: ${text}`);
  const number = Number(last);
  const ages = sums.split(';').filter((each) => each !== '');
  const bySteps = ages.map((each) => {
    const [age, sum] = each.split('*').map(Number);
    return [number - age!, sum!] as const;
  });
  return { kind: 'sliding_window', stepStart: Number(stepStart), number, sums: new Map(bySteps) };
}

function readLevel(text: string): StoredLevel {
  const [, level, time, generation, paceSince, highMaximum = 0, excess = 0] =
    /^(-?[\d.e+-]+):(\d+):(\d+):(\d+)(?::(\d+):([\d.e+-]+))?$/.exec(text) ?? [];
  if (paceSince === undefined) throw new Error(`no token bucket: ${text}`);
  return {
    kind: 'token_bucket',
    level: Number(level),
    timeMicros: Number(time),
    generation: Number(generation),
    paceSinceMicros: Number(paceSince),
    highMaximum: Number(highMaximum),
    excess: Number(excess),
  };
}

/** How long a step of a sliding window is, and how many count besides the current one. */
export function stepsOf(
  windowMillis: number,
  algorithm: Algorithm | undefined,
): { readonly stepMillis: number; readonly steps: number } {
  const steps = algorithm?.name === 'sliding_window' ? algorithm.steps : 1;
  const stepMillis = Math.max(1, Math.ceil(windowMillis / steps));
  return { stepMillis, steps: Math.ceil(windowMillis / stepMillis) };
}
