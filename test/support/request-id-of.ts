import type { Decision } from '../../src/limiter/limiter.js';

/** The request id of an approval. Throws if the decision is another. */
export function requestIdOf(decision: Decision): string {
  if (decision.outcome !== 'approved') throw new Error(decision.outcome);
  return decision.requestId;
}
