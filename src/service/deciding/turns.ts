import type { Ticks } from '../../common/ticks.js';

/** What all calls together take of a tick, about: everybody else is served between ticks. */
const MILLIS_PER_TICK = 1;
/**
 * How many elements are dealt with between two looks at the clock. Most take a few microseconds, one whose key is matched
 * for the first time as long as its rules take.
 */
const ELEMENTS_PER_GRANT = 4;

interface Waiting {
  readonly wanted: number;
  readonly go: (granted: number) => void;
}

/**
 * Shares the ticks of the event loop among bulk requests: a few elements of one call after the other, until the
 * time of the tick is used up. So a call for a thousand holds up no other request, whatever its elements cost.
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
   * Resolves when it is the call's turn, at once where no other waits.
   * @returns how many of the elements are to be dealt with now, at once. The call comes again for more.
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
      // Behind what the call does now, which takes time, and may bring it back for more.
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
