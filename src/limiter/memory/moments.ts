import { Heap } from './heap.js';

export interface Moment {
  readonly id: string;
  readonly at: number;
}

/** Moments, of which the first is known. */
export class Moments {
  readonly #heap = new Heap<Moment>(isBefore);

  get size(): number {
    return this.#heap.size;
  }

  get first(): Moment | undefined {
    return this.#heap.first;
  }

  add(moment: Moment): void {
    this.#heap.add(moment);
  }

  removeFirst(): void {
    this.#heap.removeAt(0);
  }

  /** Visits the moments up to a time, in any order, and looks at few others. */
  visitUntil(time: number, visit: (moment: Moment) => void): void {
    const indices = [0];
    for (let index = indices.pop(); index !== undefined; index = indices.pop()) {
      const moment = this.#heap.all[index];
      if (!moment || moment.at > time) continue;
      visit(moment);
      indices.push(2 * index + 1, 2 * index + 2);
    }
  }

  clear(): void {
    this.#heap.clear();
  }
}

function isBefore(one: Moment, other: Moment): boolean {
  return one.at < other.at;
}
