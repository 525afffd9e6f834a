import type { Kind } from './kind.js';

/** Approvals are let go at an even pace of the maximum per window, and up to `burst` at once. */
export interface TokenBucketAlgorithm {
  readonly name: 'token_bucket';
  readonly burst: number;
}

export const DEFAULT_BURST = 1;

export const tokenBucket: Kind<TokenBucketAlgorithm> = {
  hasBoundary: false,
  hasPace: true,
  storedNames: 2,
  hasSettableWindow: () => false,
  capacity: ({ burst }, maximum) => Math.min(burst, maximum),
  longestCountMillis: (_, windowMillis) => windowMillis,
  describe: ({ name, burst }) => `${name}, burst ${burst}`,
  shown: ({ name, burst }) => ({ Algorithm: name, Burst: burst }),
  toStored: ({ name, burst }) => [name, String(burst)],
  ofStored: { token_bucket: (burst) => ({ name: 'token_bucket', burst: Number(burst) }) },
};
