import { StoreFullError, UnavailableError } from '../errors.js';
import type { Decision, Quota } from '../limiter.js';

/** What an instance makes of a check. */
export type InstanceDecision =
  | 'approved'
  | 'denied'
  | 'queue_full'
  | 'too_many_hits'
  | 'paused'
  | 'turn_too_late'
  | 'no_place'
  | 'key_full'
  | 'store_full'
  | 'waiting';

/**
 * Returns what the caller of a check that does not wait is told.
 * @param turnMillis until its turn would have come, if that is too late
 * @throws UnavailableError or StoreFullError if the check could not be decided
 */
export function decisionOf(
  decision: Exclude<InstanceDecision, 'waiting'>,
  told: { readonly requestId: string; readonly quota: Quota; readonly turnMillis: number },
): Decision {
  const { requestId, quota, turnMillis } = told;
  switch (decision) {
    case 'approved':
      return { outcome: 'approved', requestId, quota };
    case 'denied':
      return { outcome: 'denied', reason: 'limit_reached', quota };
    case 'queue_full':
    case 'too_many_hits':
    case 'paused':
      return { outcome: 'denied', reason: decision, quota };
    case 'turn_too_late':
      return { outcome: 'denied', reason: 'turn_too_late', quota, turnMillis };
    case 'no_place':
      throw new UnavailableError('too_many_waiters');
    case 'key_full':
      throw new UnavailableError('key_full');
    case 'store_full':
      throw new StoreFullError();
  }
}
