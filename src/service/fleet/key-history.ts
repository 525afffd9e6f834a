import { MOST_STEPS, type Step, STEP_MILLIS } from './history-pages.js';

/** What all replicas have decided about a key, in steps. The lists have the oldest step first, and are of one length. */
export interface KeyHistory {
  readonly stepMillis: number;
  /** The end of the last step, in milliseconds since 1970. */
  readonly endMillis: number;
  /** Null in a step that nobody has counted, as in all lists. */
  readonly approved: readonly (number | null)[];
  readonly denied: readonly (number | null)[];
  /** The requests that waited at the end of the step. */
  readonly waiting: readonly (number | null)[];
  /** How long the approvals had waited on average that came from the queue in this step; null without one. */
  readonly waitMillis: readonly (number | null)[];
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

/**
 * @param steps by their numbers
 * @param last the number of the last step to show
 */
export function historyOf(steps: ReadonlyMap<number, Step>, last: number): KeyHistory {
  const oldest = Math.max(last - MOST_STEPS + 1, Math.min(...steps.keys()));
  const length = Math.max(0, last - oldest + 1);
  const shown = Array.from({ length }, (_, i) => steps.get(oldest + i));
  return {
    stepMillis: STEP_MILLIS,
    endMillis: (last + 1) * STEP_MILLIS,
    approved: shown.map((step) => step?.approved ?? null),
    denied: shown.map((step) => step?.denied ?? null),
    waiting: shown.map((step) => step?.waiting ?? null),
    waitMillis: shown.map((step) =>
      step && step.waited > 0 ? Math.round(step.waitedMillis / step.waited) : null,
    ),
  };
}
