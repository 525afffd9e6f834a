const PERIOD_MILLIS = 20;
/** What a timer may be late by on a machine that goes on. */
const USUAL_MILLIS = 100;

/** A span in which the machine did not get around to this process. */
interface Standstill {
  readonly from: number;
  readonly to: number;
}

/** Notices when the whole machine stands still, which is no fault of the programs under test. */
export class Standstills {
  readonly #spans: Standstill[] = [];
  readonly #timer: NodeJS.Timeout;
  #last = Date.now();

  constructor() {
    this.#timer = setInterval(() => {
      const now = Date.now();
      if (now - this.#last > PERIOD_MILLIS + USUAL_MILLIS) {
        this.#spans.push({ from: this.#last, to: now });
      }
      this.#last = now;
    }, PERIOD_MILLIS);
  }

  /** How long it stood still within a span of time, in milliseconds. */
  millisWithin(from: number, to: number): number {
    return this.#spans.reduce(
      (sum, span) => sum + Math.max(0, Math.min(to, span.to) - Math.max(from, span.from)),
      0,
    );
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
