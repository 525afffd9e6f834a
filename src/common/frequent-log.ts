import type { Clock } from './clock.js';

const INTERVAL_MILLIS = 1000;

export type Counts<What extends string> = Partial<Record<What, number>>;

/** Logs events that may happen without end: the first at once, then one line a second with their numbers. */
export class FrequentLog<What extends string> {
  #unlogged: Counts<What> = {};
  /** Runs for a second after each line. */
  #cancelTimer: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly write: (counts: Counts<What>) => void,
  ) {}

  note(what: What): void {
    this.#unlogged[what] = (this.#unlogged[what] ?? 0) + 1;
    if (!this.#cancelTimer) this.#log();
  }

  /** Logs the events of the last second. */
  close(): void {
    this.#cancelTimer?.();
    this.#log();
    this.#cancelTimer?.();
  }

  #log(): void {
    this.#cancelTimer = undefined;
    const counts = this.#unlogged;
    if (Object.keys(counts).length === 0) return;
    this.#unlogged = {};
    this.write(counts);
    this.#cancelTimer = this.clock.after(INTERVAL_MILLIS, () => this.#log());
  }
}
