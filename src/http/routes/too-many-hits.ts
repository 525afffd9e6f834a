import type { CheckRequest } from '../../limiter/limiter.js';
import type { Decided } from '../../service/deciding/decide-check.js';
import { serviceError } from '../../service/service-error.js';

/**
 * Rejects a check that no window could approve. Envoy's protocol has no such error: there it is a denial.
 * @throws ServiceError TOO_MANY_HITS
 */
export function rejectTooManyHits(
  { hits = 1 }: CheckRequest,
  { decision, policy, limit }: Decided,
): void {
  if (decision.outcome !== 'denied' || decision.reason !== 'too_many_hits' || policy.isShadow)
    return;
  throw serviceError('TOO_MANY_HITS', {
    hits,
    max: limit?.maximum ?? decision.quota.maxRequests,
    limit: !limit || limit.isOwn ? 'the key' : `the limit ${limit.name}`,
  });
}
