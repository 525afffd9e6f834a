import { limitBelow } from '../../limiter/exceeded-limit.js';
import type { CheckRequest } from '../../limiter/limiter.js';
import type { Decided } from '../../service/deciding/decide-check.js';
import { serviceError } from '../../service/service-error.js';

/**
 * Rejects a check that no window could approve. Envoy's protocol has no such error: there it is a denial.
 * @throws ServiceError TOO_MANY_HITS
 */
export function rejectTooManyHits({ hits = 1 }: CheckRequest, { decision, policy }: Decided): void {
  if (decision.outcome !== 'denied' || decision.reason !== 'too_many_hits' || policy.isShadow)
    return;
  const { name, maximum } = limitBelow(decision.quota, hits) ?? decision.quota.limits[0];
  const limit = name === undefined ? 'the key' : `the limit ${name}`;
  throw serviceError('TOO_MANY_HITS', { hits, max: maximum, limit });
}
