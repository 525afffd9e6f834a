import type { Clock } from '../../../src/common/clock.js';

interface Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** A replica's clock, a little faster or slower than the world's clock. Its timers ring when they are told to. */
export class DriftingClock implements Clock {
  readonly #timers = new Set<Timer>();

  /**
   * @param worldNow milliseconds since the world began
   * @param drift by how many thousandths it is faster
   */
  constructor(
    private readonly worldNow: () => number,
    private readonly drift: number,
  ) {}

  now(): number {
    return this.worldNow() * this.#rate;
  }

  after(delayMillis: number, callback: () => void): () => void {
    const timer = { dueAt: this.now() + Math.max(0, delayMillis), callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** How long `millis` milliseconds of this clock take in the world. */
  worldMillis(millis: number): number {
    return millis / this.#rate;
  }

  get armed(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, in whole milliseconds of the world; infinite where none is armed. */
  get nextDueAt(): number {
    return Math.ceil(this.worldMillis(this.#next?.dueAt ?? Infinity));
  }

  /** Rings the timer that is due longest. @returns whether there was one */
  ring(): boolean {
    const timer = this.#next;
    if (!timer || this.nextDueAt > this.worldNow()) return false;
    this.#timers.delete(timer);
    timer.callback();
    return true;
  }

  get #rate(): number {
    return 1 + this.drift / 1000;
  }

  get #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (!next || timer.dueAt < next.dueAt) next = timer;
    return next;
  }
}
