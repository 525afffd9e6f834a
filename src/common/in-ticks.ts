import { eventLoop } from './ticks.js';

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
