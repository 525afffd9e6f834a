import type { Settings } from '../config/settings.js';
import type { Quota } from '../limiter/limiter.js';
import { type KeyPolicy, policyItem, policyName } from '../rules/policy.js';
import { type NamedLimit, shownLimit } from './denying-limit.js';

/** Names the outage policy that decided, if the store could not be asked. */
export const OUTAGE_POLICY_HEADER = 'X-Sluice-Outage-Policy';

/** Marks an approval that a shadow rule would have denied. */
export const SHADOW_HEADER = 'X-Sluice-Shadow';

/** For `Retry-After`: whole seconds, rounded up, at least 1. RFC 9110, section 10.2.3. */
export function retryAfterSeconds(millis: number): number {
  return Math.max(1, Math.ceil(millis / 1000));
}

/** Adds the headers that tell a client how much of its limits is left. */
type AddRateLimitHeaders = typeof legacy;

/** The headers in the form that the settings name. */
export function rateLimitHeadersIn(form: Settings['RATE_LIMIT_HEADERS']): AddRateLimitHeaders {
  if (form === 'draft') return draft();
  return form === 'legacy' ? legacy : () => undefined;
}

/**
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 *
 * The texts of the last quota are kept: the answers of one call to Redis share a quota.
 */
function draft(): AddRateLimitHeaders {
  let lastQuota: Quota | undefined;
  let lastPolicy: KeyPolicy | undefined;
  let policyText = '';
  let quotaText = '';
  return (headers, quota, policy) => {
    if (quota !== lastQuota || policy !== lastPolicy) {
      policyText = isAsDeclared(quota, policy) ? policy.item : policyItem(policy, quota.limits);
      quotaText = draftQuota(quota, policy);
    }
    lastQuota = quota;
    lastPolicy = policy;
    headers.push('RateLimit-Policy', policyText, 'RateLimit', quotaText);
  };
}

/** Whether the limits in force are those of the policy: no request has set others, and no older rules did. */
function isAsDeclared({ limits }: Quota, { limits: declared }: KeyPolicy): boolean {
  return (
    limits.length === declared.length &&
    limits.every(({ name, maximum, windowMillis }, i) => {
      const other = declared[i];
      return (
        other?.maximum === maximum && other.name === name && other.windowMillis === windowMillis
      );
    })
  );
}

function draftQuota({ limits }: Quota, policy: KeyPolicy): string {
  return limits
    .map(
      ({ name = policyName(policy), remaining, resetMillis }) =>
        `"${name}";r=${remaining};t=${Math.ceil(resetMillis / 1000)}`,
    )
    .join(', ');
}

/**
 * The headers that were common before the draft, with the seconds until there may be room. They show one limit.
 * @param denying the limit that has denied the check, if its key has several
 */
function legacy(
  headers: (string | number)[],
  quota: Quota,
  _policy: KeyPolicy,
  denying?: NamedLimit,
): void {
  const { maximum, remaining, resetMillis } = shownLimit(quota, denying);
  headers.push(
    'X-RateLimit-Limit',
    maximum,
    'X-RateLimit-Remaining',
    remaining,
    'X-RateLimit-Reset',
    Math.ceil(resetMillis / 1000),
  );
}
