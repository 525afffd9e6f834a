/** The source of time and timers. Tests replace it with a controlled clock. */
export interface Clock {
  /** Milliseconds since 1970, which never go back. */
  now(): number;
  /**
   * Calls `callback` once, `delayMillis` from now. There is no longest delay.
   * @returns a function that cancels the timer
   */
  after(delayMillis: number, callback: () => void): () => void;
}

/** Node fires a timer longer than this at once: https://nodejs.org/api/timers.html#settimeoutcallback-delay-args */
const LONGEST_TIMER_MILLIS = 2 ** 31 - 1;

/** The machine's clock. It follows the monotonic one, so a step of the wall clock moves no window. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),

  after(delayMillis, callback) {
    const dueAt = this.now() + delayMillis;
    let timer: NodeJS.Timeout;
    const wait = (left: number): void => {
      timer = setTimeout(ring, Math.min(Math.ceil(Math.max(0, left)), LONGEST_TIMER_MILLIS));
    };
    const ring = (): void => {
      // Node counts from the time that it last read the clock, so a timer may fire early.
      const left = dueAt - this.now();
      if (left > 0) wait(left);
      else callback();
    };
    wait(delayMillis);
    return () => clearTimeout(timer);
  },
};
