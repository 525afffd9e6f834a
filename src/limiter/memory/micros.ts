/** A time in whole microseconds. @param millis the same in milliseconds */
export function microsOf(millis: number): number {
  return Math.round(millis * 1000);
}
