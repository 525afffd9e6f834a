/** What a level may lack by the rounding of doubles. */
export const EPSILON = 1e-9;

/** How many hits of a bucket are taken. */
export function wholeOf(level: number): number {
  return Math.max(0, Math.ceil(level - EPSILON));
}
