import type { Ticks } from '../../common/ticks.js';

/** About the time that all bulk requests together take of a tick. Other requests are served between ticks. */
const MILLIS_PER_TICK = 1;
/**
 * How many elements are dealt with between two looks at the clock. Most take a few microseconds. A key that is matched
 * for the first time takes as long as its rules do.
 */
const ELEMENTS_PER_GRANT = 4;

interface Waiting {
  readonly wanted: number;
  readonly go: (granted: number) => void;
}

/**
 * Shares the ticks of the event loop among bulk requests: a few elements of each request in turn, until the time of the
 * tick is used up. So a bulk request of a thousand elements does not delay other requests, whatever its elements cost.
 */
export class Turns {
  /** First come first. */
  readonly #waiting: Waiting[] = [];
  #isServing = false;
  /** When the time of this tick is used up; undefined while it is untouched. */
  #end: number | undefined;

  /** @param now in milliseconds */
  constructor(
    private readonly ticks: Ticks,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Resolves when it is the request's turn, at once if no other request waits.
   * @returns how many of the elements are to be dealt with now, at once. The request asks again for more.
   */
  next(wanted: number): Promise<number> {
    return new Promise((go) => {
      this.#waiting.push({ wanted, go });
      if (!this.#isServing) void this.#serve();
    });
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    while (this.#waiting.length > 0 && this.#hasTime()) {
      const next = this.#waiting.shift();
      next?.go(Math.min(next.wanted, ELEMENTS_PER_GRANT));
      // After the request's work, which takes time and may ask for another turn.
      await Promise.resolve();
    }
    this.#isServing = false;
  }

  #hasTime(): boolean {
    if (this.#end !== undefined) return this.now() < this.#end;
    this.#end = this.now() + MILLIS_PER_TICK;
    this.ticks.next(() => {
      this.#end = undefined;
      void this.#serve();
    });
    return true;
  }
}
