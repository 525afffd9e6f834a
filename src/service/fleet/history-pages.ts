import { z } from 'zod';

import { parsedMessage } from '../../common/parsed-message.js';

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
