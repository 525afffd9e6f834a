const PERIOD_MILLIS = 20;
/** The client, the replica and Redis. While the machine is busy, each may be as late as this process. */
const PROCESSES_OF_A_REQUEST = 3;

/** A span in which the machine did not get around to this process. */
interface Standstill {
  readonly from: number;
  readonly to: number;
}

/** Notices when the machine is busy or stands still, which is no fault of the programs under test. */
export class Standstills {
  readonly #spans: Standstill[] = [];
  readonly #timer: NodeJS.Timeout;
  #due = Date.now() + PERIOD_MILLIS;

  constructor() {
    this.#timer = setInterval(() => {
      const now = Date.now();
      if (now > this.#due) this.#spans.push({ from: this.#due, to: now });
      this.#due = now + PERIOD_MILLIS;
    }, PERIOD_MILLIS);
  }

  /** For how long it may have kept a request waiting within a span of time, in milliseconds. */
  millisWithin(from: number, to: number): number {
    const late = this.#overlaps(from, to).reduce((sum, millis) => sum + millis, 0);
    return PROCESSES_OF_A_REQUEST * late;
  }

  /** The longest that it stood still at a time within a span of time, in milliseconds. */
  longestWithin(from: number, to: number): number {
    return Math.max(0, ...this.#overlaps(from, to));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The overlaps of the spans with another one, in milliseconds. Long rounds have many spans, which do not overlap. */
  #overlaps(from: number, to: number): number[] {
    let [first, end] = [0, this.#spans.length];
    while (first < end) {
      const middle = (first + end) >> 1;
      if (this.#spans[middle]!.to < from) first = middle + 1;
      else end = middle;
    }
    const overlaps: number[] = [];
    for (let i = first; i < this.#spans.length && this.#spans[i]!.from < to; i += 1) {
      overlaps.push(overlapMillis(this.#spans[i]!, from, to));
    }
    return overlaps;
  }
}

function overlapMillis(span: Standstill, from: number, to: number): number {
  return Math.max(0, Math.min(to, span.to) - Math.max(from, span.from));
}
