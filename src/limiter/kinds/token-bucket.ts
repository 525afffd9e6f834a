import { type Kind, withParameter } from './kind.js';

/** Approvals are let go at an even pace of the maximum per window, and up to `burst` at once. */
export interface TokenBucketAlgorithm {
  readonly name: 'token_bucket';
  readonly burst: number;
}

export const tokenBucket = {
  hasBoundary: false,
  hasPace: true,
  storedNames: 2,
  hasSettableWindow: () => false,
  capacity: ({ burst }, maximum) => Math.min(burst, maximum),
  longestCountMillis: (_, windowMillis) => windowMillis,
  ...withParameter('token_bucket', {
    field: 'burst',
    setting: 'BURST',
    shown: 'Burst',
    bounds: { min: 1, max: 1_000_000_000 },
    isAtMostMaximum: true,
    default: 1,
    description: 'What a token bucket approves at once.',
    describe: (burst: number) => `burst ${burst}`,
  }),
} satisfies Kind<TokenBucketAlgorithm>;
