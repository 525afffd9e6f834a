import type { Settings } from '../../config/settings.js';
import type { Quota } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';

/** Adds the headers that tell a client what is left of its limit. */
export type AddRateLimitHeaders = (
  headers: (string | number)[],
  quota: Quota,
  policy: KeyPolicy,
) => void;

/** The name of the policy for keys whose rules have none. */
const DEFAULT_NAME = 'default';

/** The headers in the form that the settings name. */
export function rateLimitHeadersIn(form: Settings['RATE_LIMIT_HEADERS']): AddRateLimitHeaders {
  if (form === 'draft') return draft();
  return form === 'legacy' ? legacy : () => undefined;
}

/**
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11. A window that is no whole number of
 * seconds can't be told, so its length is left out.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 *
 * The texts made last are kept: the one for each policy, and the other, since answers of one call to Redis have one
 * quota.
 */
function draft(): AddRateLimitHeaders {
  const policyTexts = new WeakMap<KeyPolicy, { readonly max: number; readonly text: string }>();
  let lastQuota: Quota | undefined;
  let lastPolicy: KeyPolicy | undefined;
  let quotaText = '';
  const policyText = (quota: Quota, policy: KeyPolicy): string => {
    const max = quota.maxRequests;
    const last = policyTexts.get(policy);
    if (last?.max === max) return last.text;
    const text = draftPolicy(quota, policy);
    policyTexts.set(policy, { max, text });
    return text;
  };
  return (headers, quota, policy) => {
    if (quota !== lastQuota || policy !== lastPolicy) quotaText = draftQuota(quota, policy);
    lastQuota = quota;
    lastPolicy = policy;
    headers.push('RateLimit-Policy', policyText(quota, policy), 'RateLimit', quotaText);
  };
}

function draftPolicy({ maxRequests }: Quota, policy: KeyPolicy): string {
  const { windowMillis } = policy.limits;
  const length = windowMillis % 1000 === 0 ? `;w=${windowMillis / 1000}` : '';
  return `"${nameOf(policy)}";q=${maxRequests}${length}`;
}

function draftQuota({ remaining, resetMillis }: Quota, policy: KeyPolicy): string {
  return `"${nameOf(policy)}";r=${remaining};t=${Math.ceil(resetMillis / 1000)}`;
}

function nameOf({ ruleName = DEFAULT_NAME }: KeyPolicy): string {
  return ruleName;
}

/** The headers of before the draft, with the seconds until the window ends. */
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
