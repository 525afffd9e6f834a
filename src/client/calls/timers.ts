/** What a timer of Node can take. One for longer would be over at once. */
export const LONGEST_TIMER_MILLIS = 2 ** 31 - 1;

/** A timer for a span that may be endless. */
export function setTimer<T>(
  callback: (argument: T) => void,
  millis: number,
  argument: T,
): NodeJS.Timeout | undefined {
  return millis <= LONGEST_TIMER_MILLIS ? setTimeout(callback, millis, argument) : undefined;
}
