import type { Clock } from '../../src/common/clock.js';

interface Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

export interface AdvanceHooks {
  /** Called with the time at each stop before the timers run, and at the end. */
  readonly beforeTimers?: (now: number) => Promise<void>;
  /** Called at each stop after the timers ran, to wait for their effects. */
  readonly afterTimers?: () => Promise<void>;
}

/** A clock that moves only when the test says so. Its timers are due at whole milliseconds, as those of Node are. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>();
  /** The moments at which several timers were due. */
  readonly ties: number[] = [];

  constructor(private time: number) {}

  now(): number {
    return this.time;
  }

  /** Whether anything waits for this clock. */
  get isAwaited(): boolean {
    return this.#timers.size > 0;
  }

  after(delayMillis: number, callback: () => void): () => void {
    const timer = { dueAt: Math.ceil(this.time + Math.max(0, delayMillis)), callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Moves on by `millis`, stopping at each moment at which a timer is due. */
  async advance(millis: number, hooks: AdvanceHooks = {}): Promise<void> {
    const target = this.time + millis;
    for (let due = this.#due(target); due.length > 0; due = this.#due(target)) {
      this.time = Math.max(this.time, due[0]!.dueAt);
      if (due.length > 1) this.ties.push(this.time);
      await hooks.beforeTimers?.(this.time);
      for (const timer of due) if (this.#timers.delete(timer)) timer.callback();
      await hooks.afterTimers?.();
    }
    this.time = target;
    await hooks.beforeTimers?.(this.time);
  }

  /** The timers of the earliest moment up to `target`. */
  #due(target: number): Timer[] {
    const earliest = Math.min(...[...this.#timers].map((timer) => timer.dueAt));
    if (earliest > target) return [];
    return [...this.#timers].filter((timer) => timer.dueAt === earliest);
  }
}
