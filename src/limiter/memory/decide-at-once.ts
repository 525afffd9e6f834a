import type { RequestTerms } from '../request.js';
import type { Approvals } from './approvals.js';
import type { DecisionAtOnce } from './instance-decision.js';
import type { WaitingQueue } from './queue/waiting-queue.js';

/** Returns what becomes of a check that does not wait. */
export function decideAtOnce(
  now: number,
  terms: RequestTerms,
  approvals: Approvals,
  queue: WaitingQueue,
  isPaused: boolean,
): DecisionAtOnce {
  const { hits = 1 } = terms;
  const fits = approvals.fit(terms);
  const areFull = approvals.areFull(terms);
  const hasRoom = fits && !areFull && !isPaused;
  if (hasRoom && queue.isNext(now, terms, (head) => approvals.stoppedBy(head) ?? 'all')) {
    return 'approved';
  }
  if (hits > 1 && approvals.exceed(terms)) return 'too_many_hits';
  if (areFull && fits) return 'key_full';
  return isPaused ? 'paused' : 'denied';
}
