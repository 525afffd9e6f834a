/** The ticks of the event loop; simulations put others in their place. */
export interface Ticks {
  /** Calls `callback` in the next tick, once what has arrived by then has been read. */
  next(callback: () => void): void;
}

/** Node's own: https://nodejs.org/en/learn/asynchronous-work/event-loop-timers-and-nexttick */
export const eventLoop: Ticks = {
  next: (callback) => {
    setImmediate(callback);
  },
};
