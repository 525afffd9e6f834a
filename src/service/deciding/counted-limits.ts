import type { Decision, Peek } from '../../limiter/limiter.js';
import { countsList, type LimitQuota } from '../../limiter/limits.js';
import type { QueueList } from '../../limiter/queue-order.js';

/**
 * Returns a decision, or a peek, with the quota of the limits that count the check. A limit of other lanes can't have
 * denied it, and is none that its caller has to observe.
 */
export function withCountedLimits<Result extends Decision | Peek>(
  result: Result,
  list: QueueList | undefined,
): Result {
  const quota = 'quota' in result ? result.quota : undefined;
  if (!quota || quota.limits.every((limit) => countsList(limit, list))) return result;
  const [own, ...further] = quota.limits;
  const limits = [own, ...further.filter((limit: LimitQuota) => countsList(limit, list))] as const;
  return { ...result, quota: { ...quota, limits } };
}
