import { type Step, STEP_MILLIS } from './key-history.js';

/** How many steps have one value in a series. A rate is the mean of as many. */
export const STEPS_PER_SPAN = 5;
export const SPAN_MILLIS = STEPS_PER_SPAN * STEP_MILLIS;
/** The most values of a series: five minutes. */
export const MOST_SPANS = 30;

/** What was decided lately, of one key or of all. */
export interface Activity {
  /** Approvals and denials a second, in the last span of time that ends with a step. */
  readonly approved: number;
  readonly denied: number;
  /** The approvals of each span, the last one last, with null for a span that was not counted. It has no nulls at its start. */
  readonly series: readonly (number | null)[];
}

/** The number of the last span that has ended with a step, from 1970 on. */
export function lastSpanAt(lastStep: number): number {
  return Math.floor((lastStep + 1) / STEPS_PER_SPAN) - 1;
}

/** The first span of a series that ends with a span. */
export function oldestOf(last: number): number {
  return last - MOST_SPANS + 1;
}

/** How long a rate is taken over: a span, or what there is of one after the start. */
export function secondsOf(lastStep: number, firstStep: number): number {
  const steps = Math.min(STEPS_PER_SPAN, Math.max(1, lastStep - firstStep + 1));
  return (steps * STEP_MILLIS) / 1000;
}

type Decided = Pick<Step, 'number' | 'approved' | 'denied'>;

/**
 * @param steps those that were counted, the oldest first
 * @param lastStep the number of the last step that has ended
 * @param firstStep the number of the step in which the counting began, of all keys
 */
export function activityOf(
  steps: readonly Decided[],
  lastStep: number,
  firstStep: number,
): Activity {
  const recent = steps.filter(({ number }) => number > lastStep - STEPS_PER_SPAN);
  const perSecond = (count: number): number => count / secondsOf(lastStep, firstStep);
  const last = lastSpanAt(lastStep);
  const oldest = oldestOf(last);
  const bySpan = new Map<number, number>();
  for (const { number, approved } of steps) {
    const span = Math.floor(number / STEPS_PER_SPAN);
    bySpan.set(span, (bySpan.get(span) ?? 0) + approved);
  }
  const [first = last + 1] = [...bySpan.keys()].filter((span) => span >= oldest);
  return {
    approved: perSecond(sum(recent, ({ approved }) => approved)),
    denied: perSecond(sum(recent, ({ denied }) => denied)),
    series: Array.from(
      { length: Math.max(0, last - first + 1) },
      (_, i) => bySpan.get(first + i) ?? null,
    ),
  };
}

/**
 * Adds up the activity of several replicas.
 * @param parts each with the span in which its series ends. A replica may have reported before the last span has ended, or
 * have a clock that is a little fast. One whose clock is wrong is taken as if its series ended with `last`.
 * @param last the span in which the sum ends
 */
export function activityTogether(
  parts: readonly (Activity & { readonly span: number })[],
  last: number,
): Activity {
  const series: (number | null)[] = Array.from({ length: MOST_SPANS }, () => null);
  for (const part of parts) {
    const late = last - part.span;
    const shift = Math.abs(late) > 1 ? 0 : late;
    for (const [i, value] of part.series.entries()) {
      const at = MOST_SPANS - part.series.length + i - shift;
      if (value !== null && at >= 0 && at < MOST_SPANS) series[at] = (series[at] ?? 0) + value;
    }
  }
  const first = series.findIndex((value) => value !== null);
  return {
    approved: sum(parts, ({ approved }) => approved),
    denied: sum(parts, ({ denied }) => denied),
    series: first === -1 ? [] : series.slice(first),
  };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((all, item) => all + of(item), 0);
}
