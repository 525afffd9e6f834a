import type { Quota } from '../../src/limiter/limiter.js';
import { ownLimit } from '../../src/limiter/limits.js';

/** What a key with one limit has left. Times are in milliseconds. */
export interface OwnQuota {
  readonly windowMillis: number;
  readonly maxRequests: number;
  readonly remaining: number;
  readonly resetMillis: number;
}

/** The quota of a key with one limit. */
export function ownQuota({ windowMillis, maxRequests, remaining, resetMillis }: OwnQuota): Quota {
  return { limits: [{ ...ownLimit(windowMillis, maxRequests), remaining, resetMillis }] };
}

/** The quota of a full window with one approval. */
export function quotaOf(resetMillis: number): Quota {
  return ownQuota({ windowMillis: 1000, maxRequests: 1, remaining: 0, resetMillis });
}
