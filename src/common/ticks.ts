import { executionAsyncResource } from 'node:async_hooks';

/** The ticks of the event loop. Simulations replace them. */
export interface Ticks {
  /** Calls `callback` in the next tick, after all arrived data has been read. */
  next(callback: () => void): void;
}

/** Node's event loop: https://nodejs.org/en/learn/asynchronous-work/event-loop-timers-and-nexttick */
export const eventLoop: Ticks = {
  next: (callback) => setImmediate(callback),
};

let endOfThisTick: Promise<void> | undefined;

/**
 * Resolves when the event loop has read all that has arrived.
 *
 * Answers that are written one after the other wake their reader once. Answers written while requests are
 * still read would each wake it, which costs a fifth of the decisions per second (BENCHMARKS.md). Answers from
 * Redis come together anyway.
 */
export function endOfTick(): Promise<void> {
  endOfThisTick ??= new Promise((resolve) =>
    setImmediate(() => {
      endOfThisTick = undefined;
      resolve();
    }),
  );
  return endOfThisTick;
}

let lastTick: object | undefined;

/**
 * Keeps one object of `process.nextTick` alive, and with it the shape that V8 has learnt of such objects.
 *
 * The garbage collection of an idle process drops a shape that no object has. From then on V8 creates these objects, of
 * which a request takes several, by its slowest path: a check took a tenth more of a core.
 * @returns that object, once it exists
 */
export function keepTickShape(): Promise<object> {
  return new Promise((resolve) =>
    process.nextTick(() => {
      lastTick = executionAsyncResource();
      resolve(lastTick);
    }),
  );
}

/** How long the work of a tick may take. */
const WORK_MILLIS = 1;

/** Does `work` for each item: at once as far as that takes a millisecond, and for the others in later ticks. */
export function inTicks<T>(items: Iterable<T>, work: (item: T) => void): void {
  const left = items[Symbol.iterator]();
  const goOn = (): void => {
    const end = performance.now() + WORK_MILLIS;
    for (let next = left.next(); !next.done; next = left.next()) {
      work(next.value);
      if (performance.now() < end) continue;
      eventLoop.next(goOn);
      return;
    }
  };
  goOn();
}
