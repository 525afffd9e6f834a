import type { Approvals, Terms } from './approvals.js';
import type { DecisionAtOnce } from './instance-decision.js';

/** What waits or holds checks back. */
interface Before {
  readonly waiting: number;
  readonly isPaused: boolean;
}

/** Returns what becomes of a check that does not wait. */
export function decideAtOnce(
  approvals: Approvals,
  terms: Terms,
  { waiting, isPaused }: Before,
): DecisionAtOnce {
  const { hits = 1 } = terms;
  const fits = approvals.fit(terms);
  const areFull = approvals.areFull(terms);
  // It would be the next to be approved if it joined the queue.
  const isNext = waiting === 0 && !isPaused;
  if (isNext && fits && !areFull) return 'approved';
  if (hits > 1 && approvals.exceed(hits)) return 'too_many_hits';
  if (areFull && fits) return 'key_full';
  return isPaused ? 'paused' : 'denied';
}
