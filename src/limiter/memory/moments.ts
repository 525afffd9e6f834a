export interface Moment {
  readonly id: string;
  readonly at: number;
}

/** Moments, of which the first is known: a binary heap. */
export class Moments {
  #heap: Moment[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): Moment | undefined {
    return this.#heap[0];
  }

  add(moment: Moment): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(moment);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (!above || above.at <= moment.at) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = moment;
  }

  removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      const next = right && left && right.at < left.at ? right : left;
      if (!next || next.at >= last.at) break;
      heap[index] = next;
      index = 2 * index + (next === right ? 2 : 1);
    }
    heap[index] = last;
  }

  /** Visits the moments up to a time, in any order, and looks at few others. */
  visitUntil(time: number, visit: (moment: Moment) => void): void {
    const indices = [0];
    for (let index = indices.pop(); index !== undefined; index = indices.pop()) {
      const moment = this.#heap[index];
      if (!moment || moment.at > time) continue;
      visit(moment);
      indices.push(2 * index + 1, 2 * index + 2);
    }
  }

  copy(): Moments {
    const copy = new Moments();
    copy.#heap = [...this.#heap];
    return copy;
  }

  clear(): void {
    this.#heap.length = 0;
  }
}
