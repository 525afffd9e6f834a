import { MOST_STEPS, type Step } from './key-history.js';

/** The numbers of a step, in the order in which they are kept. The first is its distance to the first step. */
const FIELDS = 6;
/** Few keys are counted for long, so that a log begins small, and doubles. */
const FEWEST_STEPS = 8;
const SIZE = 2 ** Math.ceil(Math.log2(MOST_STEPS));

/** The last steps of one key, in 12 KB at most. A step that nobody has counted is left out. */
export class StepLog {
  #first = 0;
  /** How many were ever added. */
  #added = 0;
  #values = new Float32Array(FEWEST_STEPS * FIELDS);

  /** @param step a later one than those before */
  add({ number, approved, denied, waiting, waited, waitedMillis }: Step): void {
    if (this.#added === 0) this.#first = number;
    if (this.#added === this.#size && this.#size < SIZE) {
      const larger = new Float32Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    const values = [number - this.#first, approved, denied, waiting, waited, waitedMillis];
    this.#values.set(values, (this.#added % this.#size) * FIELDS);
    this.#added += 1;
  }

  /** The number of the last step; undefined before the first. */
  get last(): number | undefined {
    return this.#added === 0 ? undefined : this.#numberAt(this.#added - 1);
  }

  /** The steps from a number on, the oldest first. Never more than the history of a key has. */
  since(oldest: number): Step[] {
    const steps: Step[] = [];
    const fewest = Math.max(0, this.#added - MOST_STEPS);
    const values = this.#values;
    for (let i = this.#added - 1; i >= fewest && this.#numberAt(i) >= oldest; i -= 1) {
      const at = (i % this.#size) * FIELDS;
      steps.push({
        number: this.#numberAt(i),
        approved: values[at + 1] ?? 0,
        denied: values[at + 2] ?? 0,
        waiting: values[at + 3] ?? 0,
        waited: values[at + 4] ?? 0,
        waitedMillis: values[at + 5] ?? 0,
      });
    }
    return steps.reverse();
  }

  get #size(): number {
    return this.#values.length / FIELDS;
  }

  #numberAt(index: number): number {
    return this.#first + (this.#values[(index % this.#size) * FIELDS] ?? 0);
  }
}
