import type { CheckRequest, Decision, Limiter } from '../../limiter/limiter.js';
import { countsList, forEachLimit, type LimitQuota } from '../../limiter/limits.js';

type Denied = Extract<Decision, { readonly outcome: 'denied' }>;

/** A limit has denied these. Other denials are about places in the queue, or a pause. */
const BY_LIMITS: readonly Denied['reason'][] = ['limit_reached', 'too_many_hits'];

/**
 * Lets a denied check take what is left of the fixed windows that lack room for it, as in Envoy ratelimit, where a denied
 * request counts. What asks only after it has used something, as the token limits of a gateway do, is limited for the rest of the
 * window, and nothing exceeds a maximum.
 * @returns the decision, with what is left then
 */
export async function withRestTaken(
  decision: Decision,
  { key, hits = 1, list }: Pick<CheckRequest, 'key' | 'hits' | 'list'>,
  limiter: Pick<Limiter, 'reportRemaining'>,
): Promise<Decision> {
  if (decision.outcome !== 'denied' || !BY_LIMITS.includes(decision.reason)) return decision;
  const { quota } = decision;
  const hasTaken = (limit: LimitQuota): boolean =>
    limit.algorithm.name === 'fixed_window' &&
    limit.counts === 'hits' &&
    countsList(limit, list) &&
    limit.remaining < hits;
  await Promise.all(
    quota.limits
      .filter((limit) => hasTaken(limit) && limit.remaining > 0)
      .map(({ name }) => limiter.reportRemaining(key, { limit: name, remaining: 0 })),
  );
  const limits = forEachLimit(quota.limits, (limit) =>
    hasTaken(limit) ? { ...limit, remaining: 0 } : limit,
  );
  return { ...decision, quota: { ...quota, limits } };
}
