import type { Settings } from '../config/settings.js';
import type { Quota } from '../limiter/limiter.js';
import { type KeyPolicy, policyItem, policyName } from '../rules/policy.js';

/** Names the outage policy that decided, if the store could not be asked. */
export const OUTAGE_POLICY_HEADER = 'X-Sluice-Outage-Policy';

/** Marks an approval that a shadow rule would have denied. */
export const SHADOW_HEADER = 'X-Sluice-Shadow';

/** For `Retry-After`: whole seconds, rounded up, at least 1. RFC 9110, section 10.2.3. */
export function retryAfterSeconds(millis: number): number {
  return Math.max(1, Math.ceil(millis / 1000));
}

/** Adds the headers that tell a client how much of its limit is left. */
export type AddRateLimitHeaders = (
  headers: (string | number)[],
  quota: Quota,
  policy: KeyPolicy,
) => void;

/** The headers in the form that the settings name. */
export function rateLimitHeadersIn(form: Settings['RATE_LIMIT_HEADERS']): AddRateLimitHeaders {
  if (form === 'draft') return draft();
  return form === 'legacy' ? legacy : () => undefined;
}

/**
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 *
 * The text of the last quota is kept: the answers of one call to Redis share a quota.
 */
function draft(): AddRateLimitHeaders {
  let lastQuota: Quota | undefined;
  let lastPolicy: KeyPolicy | undefined;
  let quotaText = '';
  return (headers, quota, policy) => {
    if (quota !== lastQuota || policy !== lastPolicy) quotaText = draftQuota(quota, policy);
    lastQuota = quota;
    lastPolicy = policy;
    const { maxRequests, windowMillis } = quota;
    const isAsDeclared = maxRequests === policy.limits.maxRequests && windowMillis === undefined;
    const policyText = isAsDeclared ? policy.item : policyItem(policy, maxRequests, windowMillis);
    headers.push('RateLimit-Policy', policyText, 'RateLimit', quotaText);
  };
}

function draftQuota({ remaining, resetMillis }: Quota, policy: KeyPolicy): string {
  return `"${policyName(policy)}";r=${remaining};t=${Math.ceil(resetMillis / 1000)}`;
}

/** The headers that were common before the draft, with the seconds until there may be room. */
function legacy(
  headers: (string | number)[],
  { maxRequests, remaining, resetMillis }: Quota,
): void {
  headers.push(
    'X-RateLimit-Limit',
    maxRequests,
    'X-RateLimit-Remaining',
    remaining,
    'X-RateLimit-Reset',
    Math.ceil(resetMillis / 1000),
  );
}
