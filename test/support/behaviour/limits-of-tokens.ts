import type { DeclaredLimits, FurtherLimit } from '../limits.js';

export const WINDOW = 1000;
export const LIMITS: DeclaredLimits = {
  windowMillis: WINDOW,
  maxRequests: 10,
  maxRequestsInQueue: 5,
};

/** A limit of hits that outlasts windows of the key. */
export const TOKENS: FurtherLimit = {
  name: 'tokens',
  windowMillis: 5000,
  maximum: 100,
  counts: 'hits',
  keepsReleased: false,
};
