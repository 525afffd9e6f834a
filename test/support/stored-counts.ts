import type { CalendarWindow } from '../../src/limiter/calendar/calendar.js';
import type { Algorithm } from '../../src/limiter/kinds/kinds.js';

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

/** The fields that the kind of a limit stores, as JSON has them: `read` of the kinds in lua/limits. */
export interface StoredFields {
  readonly carried?: number;
  readonly surplus?: number;
  readonly floor?: number;
  readonly reported_until?: number;
  readonly ends_at?: number;
  readonly next_ends?: number;
  readonly step_start?: number;
  readonly number?: number;
  readonly current?: number;
  readonly past?: string;
  readonly oldest?: number;
  readonly level?: number;
  readonly time?: number;
  readonly generation?: number;
  readonly pace_since?: number;
  readonly high_max?: number;
  readonly excess?: number;
}

/** Returns undefined without a report, which only a fixed window has. */
export function readReport({
  surplus,
  floor = 0,
  reported_until: until = 0,
}: StoredFields): StoredReport | undefined {
  return surplus === undefined ? undefined : { surplus, floor, until };
}

/** Returns the window of a calendar that a limit has, with the end of the next one. */
export function readCalendarWindow(
  start: number,
  { ends_at: end, next_ends: nextEnd }: StoredFields,
): CalendarWindow {
  return { start, end: stored(end), nextEnd: stored(nextEnd) };
}

/** @returns undefined for a fixed window */
export function readCounts(
  algorithm: Algorithm | undefined,
  fields: StoredFields,
): StoredCounts | undefined {
  if (algorithm?.name === 'sliding_window') return readSteps(fields);
  if (algorithm?.name === 'token_bucket') return readLevel(fields);
  return undefined;
}

function readSteps(fields: StoredFields): StoredSteps {
  const { past = '', oldest = 0 } = fields;
  const number = stored(fields.number);
  const earlier =
    past === '' ? [] : past.split(',').map((sum, i) => [oldest + i, Number(sum)] as const);
  const sums = [...earlier, [number, stored(fields.current)] as const].filter(([, sum]) => sum > 0);
  return {
    kind: 'sliding_window',
    stepStart: stored(fields.step_start),
    number,
    sums: new Map(sums),
  };
}

function readLevel(fields: StoredFields): StoredLevel {
  return {
    kind: 'token_bucket',
    level: stored(fields.level),
    timeMicros: stored(fields.time),
    generation: stored(fields.generation),
    paceSinceMicros: fields.pace_since ?? 0,
    highMaximum: fields.high_max ?? 0,
    excess: fields.excess ?? 0,
  };
}

function stored(value: number | undefined): number {
  if (value === undefined) throw new Error('a field of the limit is missing');
  return value;
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
