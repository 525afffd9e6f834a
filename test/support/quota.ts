import type { Quota } from '../../src/limiter/limiter.js';

/** The quota of a full window with one approval. */
export function quotaOf(resetMillis: number): Quota {
  return { maxRequests: 1, remaining: 0, resetMillis };
}
