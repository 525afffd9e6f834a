import type { Ticks } from '../../../common/ticks.js';

/** What takes about a millisecond; and two calls to Redis, so that it decides one while the next is made. */
const ELEMENTS_PER_TICK = 200;

interface Waiting {
  readonly wanted: number;
  readonly go: (granted: number) => void;
}

/**
 * Shares the ticks of the event loop among the calls for many. Each tick deals with a bounded number of elements, of
 * one call after the other, and everybody else is served between ticks: a call for a thousand holds up no other request.
 */
export class Turns {
  readonly #waiting: Waiting[] = [];
  /** Of this tick. */
  #left = ELEMENTS_PER_TICK;

  constructor(private readonly ticks: Ticks) {}

  /**
   * Resolves when it is the call's turn, at once where no other waits.
   * @returns how many of the elements are to be dealt with now. The call comes again for more.
   */
  async next(wanted: number): Promise<number> {
    if (this.#left > 0 && this.#waiting.length === 0) return this.#grant(wanted);
    return new Promise((go) => this.#waiting.push({ wanted, go }));
  }

  #grant(wanted: number): number {
    if (this.#left === ELEMENTS_PER_TICK) this.#goOnNextTick();
    const granted = Math.min(wanted, this.#left);
    this.#left -= granted;
    return granted;
  }

  #goOnNextTick(): void {
    this.ticks.next(() => {
      this.#left = ELEMENTS_PER_TICK;
      while (this.#left > 0) {
        const next = this.#waiting.shift();
        if (!next) return;
        next.go(this.#grant(next.wanted));
      }
    });
  }
}
