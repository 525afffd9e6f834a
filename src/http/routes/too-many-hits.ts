import { limitBelow } from '../../limiter/exceeded-limit.js';
import { capacityOf } from '../../limiter/limits.js';
import type { CheckRequest, Decision, Peek } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { serviceError } from '../../service/service-error.js';

/**
 * Rejects a check that could never be approved. Envoy's protocol has no such error: there it is a denial.
 * @throws ServiceError TOO_MANY_HITS
 */
export function rejectTooManyHits(
  { hits = 1 }: Pick<CheckRequest, 'hits'>,
  { decision, policy }: { readonly decision: Decision | Peek; readonly policy: KeyPolicy },
): void {
  if (decision.outcome !== 'denied' || decision.reason !== 'too_many_hits' || policy.isShadow)
    return;
  const below = limitBelow(decision.quota, hits) ?? decision.quota.limits[0];
  const { name, maximum, algorithm } = below;
  const isBurst = algorithm.name === 'token_bucket' && algorithm.burst < maximum;
  const limit = name === undefined ? 'the key' : `the limit ${name}`;
  const bound = isBurst ? 'burst' : 'maximum';
  throw serviceError('TOO_MANY_HITS', { hits, max: capacityOf(below), bound, limit });
}
