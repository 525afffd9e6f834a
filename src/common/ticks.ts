/** The ticks of the event loop. Simulations replace them. */
export interface Ticks {
  /** Calls `callback` in the next tick, after all arrived data has been read. */
  next(callback: () => void): void;
}

/** Node's own: https://nodejs.org/en/learn/asynchronous-work/event-loop-timers-and-nexttick */
export const eventLoop: Ticks = {
  next: (callback) => {
    setImmediate(callback);
  },
};
