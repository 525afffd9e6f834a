import type { Quota } from '../../src/limiter/limiter.js';

/** What is left of a window of one approval that is full. */
export function quotaOf(resetMillis: number): Quota {
  return { maxRequests: 1, remaining: 0, resetMillis };
}
