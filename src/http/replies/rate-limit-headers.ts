import type { Settings } from '../../config/settings.js';
import type { Quota } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type { Headers } from './headers.js';

/** The headers that tell a client what is left of its limit. */
export type RateLimitHeaders = (quota: Quota, policy: KeyPolicy) => Headers;

/** The name of the policy for keys whose rules have none. */
const DEFAULT_NAME = 'default';

/** The headers in the form that the settings name. */
export function rateLimitHeadersIn(form: Settings['RATE_LIMIT_HEADERS']): RateLimitHeaders {
  return FORMS[form];
}

const FORMS: Readonly<Record<Settings['RATE_LIMIT_HEADERS'], RateLimitHeaders>> = {
  off: () => [],
  draft,
  legacy,
};

/**
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11. A window that is no whole number of
 * seconds can't be told, so its length is left out.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 */
function draft({ maxRequests, remaining, resetMillis }: Quota, policy: KeyPolicy): Headers {
  const name = policy.ruleName ?? DEFAULT_NAME;
  const { windowMillis } = policy.limits;
  const length = windowMillis % 1000 === 0 ? `;w=${windowMillis / 1000}` : '';
  return [
    'RateLimit-Policy',
    `"${name}";q=${maxRequests}${length}`,
    'RateLimit',
    `"${name}";r=${remaining};t=${Math.ceil(resetMillis / 1000)}`,
  ];
}

/** The headers of before the draft, with the seconds until the window ends. */
function legacy({ maxRequests, remaining, resetMillis }: Quota): Headers {
  return [
    'X-RateLimit-Limit',
    maxRequests,
    'X-RateLimit-Remaining',
    remaining,
    'X-RateLimit-Reset',
    Math.ceil(resetMillis / 1000),
  ];
}
