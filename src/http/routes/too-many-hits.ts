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
  const { maximum: max, name } = limit ?? { maximum: decision.quota.maxRequests };
  throw serviceError('TOO_MANY_HITS', {
    hits,
    max,
    limit: name === undefined ? 'the key' : `the limit ${name}`,
  });
}
