import { type Activity, activityOf, MOST_SPANS, secondsOf, STEPS_PER_SPAN } from './rates.js';

/** How many checks had each outcome since the start. */
export type Decisions = Readonly<
  Record<'approved' | 'denied' | 'shadowed' | 'withdrawn' | 'failed', number>
>;

export interface TotalActivity extends Activity {
  /** Approvals and denials are those of {@link Activity}. */
  readonly shadowed: number;
  readonly withdrawn: number;
  readonly failed: number;
}

/** As many as a series takes, of which the last span may have just begun. */
const MOST_KEPT = (MOST_SPANS + 1) * STEPS_PER_SPAN;

const NONE: Decisions = { approved: 0, denied: 0, shadowed: 0, withdrawn: 0, failed: 0 };

/** What this replica has decided lately, of all keys together, in the steps of {@link CountedKeys}. */
export class TotalRates {
  readonly #steps: (Decisions & { readonly number: number })[] = [];
  #before = NONE;

  /** @param firstStep the number of the step in which the counting began. A loop that was blocked ends none before a later one */
  constructor(private readonly firstStep: number) {}

  /** The number of the last step. Undefined until the first has ended. */
  get last(): number | undefined {
    return this.#steps.at(-1)?.number;
  }

  /** A step has ended. @param totals since the start */
  add(number: number, totals: Decisions): void {
    const before = this.#before;
    this.#before = totals;
    this.#steps.push({
      number,
      approved: totals.approved - before.approved,
      denied: totals.denied - before.denied,
      shadowed: totals.shadowed - before.shadowed,
      withdrawn: totals.withdrawn - before.withdrawn,
      failed: totals.failed - before.failed,
    });
    if (this.#steps.length > MOST_KEPT) this.#steps.shift();
  }

  /** Undefined until the first step has ended. */
  now(): TotalActivity | undefined {
    const { last, firstStep } = this;
    if (last === undefined) return undefined;
    const recent = this.#steps.filter(({ number }) => number > last - STEPS_PER_SPAN);
    const seconds = secondsOf(last, firstStep);
    const rateOf = (outcome: keyof Decisions): number =>
      recent.reduce((all, step) => all + step[outcome], 0) / seconds;
    return {
      ...activityOf(this.#steps, last, firstStep),
      shadowed: rateOf('shadowed'),
      withdrawn: rateOf('withdrawn'),
      failed: rateOf('failed'),
    };
  }
}
