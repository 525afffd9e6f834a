// From the module, and not the globals, which a test may replace: a request would wait for the test's clock.
import { setTimeout } from 'node:timers';

/** The longest time of a timer in Node. A longer one would fire at once. */
export const LONGEST_TIMER_MILLIS: number = 2 ** 31 - 1;

/** A timer for a time that may be infinite. */
export function setTimer<T>(
  callback: (argument: T) => void,
  millis: number,
  argument: T,
): NodeJS.Timeout | undefined {
  return millis <= LONGEST_TIMER_MILLIS ? setTimeout(callback, millis, argument) : undefined;
}
