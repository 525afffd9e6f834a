export interface Moment {
  readonly id: string;
  readonly at: number;
}

/** Moments, of which the first is known: a binary heap. */
export class Moments {
  readonly #heap: Moment[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): Moment | undefined {
    return this.#heap[0];
  }

  add(moment: Moment): void {
    const heap = this.#heap;
    let place = heap.length;
    heap.push(moment);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent];
      if (!above || above.at <= moment.at) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = moment;
  }

  removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let place = 0;
    for (;;) {
      const left = heap[2 * place + 1];
      const right = heap[2 * place + 2];
      const next = right && left && right.at < left.at ? right : left;
      if (!next || next.at >= last.at) break;
      heap[place] = next;
      place = 2 * place + (next === right ? 2 : 1);
    }
    heap[place] = last;
  }

  /** Visits the moments up to a time, in any order, and looks at few others. */
  visitUntil(time: number, visit: (moment: Moment) => void): void {
    const places = [0];
    for (let place = places.pop(); place !== undefined; place = places.pop()) {
      const moment = this.#heap[place];
      if (!moment || moment.at > time) continue;
      visit(moment);
      places.push(2 * place + 1, 2 * place + 2);
    }
  }

  clear(): void {
    this.#heap.length = 0;
  }
}
