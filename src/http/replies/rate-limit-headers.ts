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
  return form === 'draft' ? rememberingLast(FORMS[form]) : FORMS[form];
}

const FORMS: Readonly<Record<Settings['RATE_LIMIT_HEADERS'], AddRateLimitHeaders>> = {
  off: () => undefined,
  draft,
  legacy,
};

/** Answers with the same quota are written one after the other. */
function rememberingLast(make: AddRateLimitHeaders): AddRateLimitHeaders {
  let last: { readonly quota: Quota; readonly policy: KeyPolicy } | undefined;
  let made: (string | number)[] = [];
  return (headers, quota, policy) => {
    if (last?.quota !== quota || last.policy !== policy) {
      last = { quota, policy };
      made = [];
      make(made, quota, policy);
    }
    for (const part of made) headers.push(part);
  };
}

/**
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11. A window that is no whole number of
 * seconds can't be told, so its length is left out.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 */
function draft(
  headers: (string | number)[],
  { maxRequests, remaining, resetMillis }: Quota,
  policy: KeyPolicy,
): void {
  const name = policy.ruleName ?? DEFAULT_NAME;
  const { windowMillis } = policy.limits;
  const length = windowMillis % 1000 === 0 ? `;w=${windowMillis / 1000}` : '';
  headers.push(
    'RateLimit-Policy',
    `"${name}";q=${maxRequests}${length}`,
    'RateLimit',
    `"${name}";r=${remaining};t=${Math.ceil(resetMillis / 1000)}`,
  );
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
