import { z } from 'zod';

import { parsedMessage } from '../../common/schemas.js';

/** The length of the steps in which the decisions about a key are counted. */
export const STEP_MILLIS = 2000;
/** How long what was counted is kept. */
export const HISTORY_MILLIS = 15 * 60_000;
export const MOST_STEPS = HISTORY_MILLIS / STEP_MILLIS;

const MINUTE_MILLIS = 60_000;
const STEPS_PER_MINUTE = MINUTE_MILLIS / STEP_MILLIS;

/** What a replica has decided about a key in one step, or what all replicas have. */
export interface Step {
  /** The number of steps from 1970 to its begin. */
  readonly number: number;
  readonly approved: number;
  readonly denied: number;
  /** The requests that waited at its end. */
  readonly waiting: number;
  /** How many of the approvals had to wait, and for how long together. */
  readonly waited: number;
  readonly waitedMillis: number;
}

/** The steps of one minute, as a text. */
export interface HistoryPage {
  /** The number of minutes from 1970 to its begin. */
  readonly minute: number;
  readonly text: string;
}

const pageSchema = z.array(z.array(z.number().nonnegative()).length(6)).max(STEPS_PER_MINUTE);

/** The minute of a moment, in milliseconds since 1970. */
export function minuteAt(millis: number): number {
  return Math.floor(millis / MINUTE_MILLIS);
}

export function minuteOf({ number }: Pick<Step, 'number'>): number {
  return Math.floor(number / STEPS_PER_MINUTE);
}

/** Returns a page for each minute with steps. */
export function writePages(steps: readonly Step[]): HistoryPage[] {
  const byMinute = new Map<number, number[][]>();
  for (const step of steps) {
    const minute = minuteOf(step);
    const { number, approved, denied, waiting, waited, waitedMillis } = step;
    const numbers = [number % STEPS_PER_MINUTE, approved, denied, waiting, waited, waitedMillis];
    byMinute.set(minute, [...(byMinute.get(minute) ?? []), numbers]);
  }
  return [...byMinute].map(([minute, rows]) => ({ minute, text: JSON.stringify(rows) }));
}

/** @returns no steps for a page that a replica of another version writes in another form */
export function readPage({ minute, text }: HistoryPage): Step[] {
  const rows = parsedMessage(pageSchema, text) ?? [];
  return rows.map(
    ([index = 0, approved = 0, denied = 0, waiting = 0, waited = 0, waitedMillis = 0]) => ({
      number: minute * STEPS_PER_MINUTE + index,
      ...{ approved, denied, waiting, waited, waitedMillis },
    }),
  );
}

/** Adds up steps of several replicas that have the same number. */
export function sumOf(steps: Iterable<Step>): Map<number, Step> {
  const sums = new Map<number, Step>();
  for (const step of steps) {
    const before = sums.get(step.number);
    sums.set(step.number, before ? added(before, step) : step);
  }
  return sums;
}

function added(a: Step, b: Step): Step {
  return {
    number: a.number,
    approved: a.approved + b.approved,
    denied: a.denied + b.denied,
    waiting: a.waiting + b.waiting,
    waited: a.waited + b.waited,
    waitedMillis: a.waitedMillis + b.waitedMillis,
  };
}

/** What all replicas have decided about a key, in steps. */
export type KeyHistory = ReturnType<typeof historyOf>;

/**
 * The lists have the oldest step first, are of one length, and have null for a step that nobody has counted.
 * @param steps by their numbers
 * @param last the number of the last step to show
 */
export function historyOf(steps: ReadonlyMap<number, Step>, last: number) {
  const oldest = Math.max(last - MOST_STEPS + 1, Math.min(...steps.keys()));
  const length = Math.max(0, last - oldest + 1);
  const shown = Array.from({ length }, (_, i) => steps.get(oldest + i));
  return {
    stepMillis: STEP_MILLIS,
    /** The end of the last step, in milliseconds since 1970. */
    endMillis: (last + 1) * STEP_MILLIS,
    approved: shown.map((step) => step?.approved ?? null),
    denied: shown.map((step) => step?.denied ?? null),
    /** The requests that waited at the end of the step. */
    waiting: shown.map((step) => step?.waiting ?? null),
    /** How long the approvals had waited on average that came from the queue in this step; null without one. */
    waitMillis: shown.map((step) =>
      step && step.waited > 0 ? Math.round(step.waitedMillis / step.waited) : null,
    ),
  };
}
