import type { Clock } from '../../common/clock.js';

/** Timers that are due within this time of each other count as the same. */
const SAME_TIME_MILLIS = 1;

/** The one timer of a queue's mode. When it is armed again, the earlier time no longer counts. */
export class ModeTimer {
  #armed: { readonly dueAt: number; readonly cancelTimer: () => void } | undefined;

  constructor(private readonly clock: Clock) {}

  /** @param dueAt by the clock; a time in the past is due at once */
  arm(dueAt: number, onDue: () => void): void {
    if (this.#armed && Math.abs(this.#armed.dueAt - dueAt) < SAME_TIME_MILLIS) return;
    this.cancel();
    const cancelTimer = this.clock.after(dueAt - this.clock.now(), () => {
      this.#armed = undefined;
      onDue();
    });
    this.#armed = { dueAt, cancelTimer };
  }

  cancel(): void {
    this.#armed?.cancelTimer();
    this.#armed = undefined;
  }
}
