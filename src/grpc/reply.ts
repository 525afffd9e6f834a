import type { Settings } from '../config/settings.js';
import { OUTAGE_POLICY_HEADER, retryAfterSeconds, SHADOW_HEADER } from '../http/replies/headers.js';
import { rateLimitHeadersIn } from '../http/replies/rate-limit-headers.js';
import type { Quota } from '../limiter/limiter.js';
import { policyName } from '../rules/policy.js';
import { type Decided, passes } from './decide-together.js';
import { type DescriptorStatus, type RateLimitResponse, unitOf } from './messages.js';

type Headers = RateLimitResponse['response_headers_to_add'];

const addRateLimit = rateLimitHeadersIn('legacy');

/** @returns what makes replies of decisions, which are in the order of the descriptors */
export function repliesBy({
  RATE_LIMIT_HEADERS,
}: Pick<Settings, 'RATE_LIMIT_HEADERS'>): (
  decided: readonly (Decided | undefined)[],
) => RateLimitResponse {
  const showsLimit = RATE_LIMIT_HEADERS !== 'off';
  return (decided) => {
    const isApproved = decided.every((one) => one && passes(one));
    return {
      overall_code: isApproved ? 'OK' : 'OVER_LIMIT',
      statuses: decided.map((one) => (one ? statusOf(one) : { code: 'UNKNOWN' })),
      response_headers_to_add: headersOf(
        decided.filter((one) => one !== undefined),
        showsLimit,
      ),
    };
  };
}

function statusOf(decided: Decided): DescriptorStatus {
  const { policy } = decided;
  const quota = quotaOf(decided);
  // One that was withdrawn since another was refused is not decided.
  const isWithdrawn = decided.decision.outcome === 'withdrawn';
  const code = passes(decided) ? 'OK' : 'OVER_LIMIT';
  return {
    code: isWithdrawn ? 'UNKNOWN' : code,
    ...(quota
      ? {
          current_limit: {
            requests_per_unit: quota.maxRequests,
            unit: unitOf(policy.limits.windowMillis),
            name: policyName(policy),
          },
          limit_remaining: quota.remaining,
          duration_until_reset: durationOf(quota.resetMillis),
        }
      : {}),
  };
}

function headersOf(decided: readonly Decided[], showsLimit: boolean): Headers {
  const refused = decided.filter((one) => !passes(one));
  const headers: (string | number)[] = [];
  const nearest = nearestLimit(refused.length > 0 ? refused : decided);
  if (nearest && showsLimit) addRateLimit(headers, nearest.quota, nearest.decided.policy);
  const turns = refused.flatMap(({ decision }) =>
    decision.outcome === 'denied' ? [decision.turnMillis ?? decision.quota.resetMillis] : [],
  );
  if (turns.length > 0) headers.push('Retry-After', retryAfterSeconds(Math.max(...turns)));
  const substitute = decided.map(({ decision }) => outagePolicyOf(decision)).find(Boolean);
  if (substitute) headers.push(OUTAGE_POLICY_HEADER, substitute);
  const isShadow = refused.length === 0 && decided.some((one) => one.decision.outcome === 'denied');
  if (isShadow) headers.push(SHADOW_HEADER, 'denied');
  return pairs(headers);
}

/** The one that has the least left, of which a client should know. */
function nearestLimit(
  decided: readonly Decided[],
): { readonly decided: Decided; readonly quota: Quota } | undefined {
  return decided
    .flatMap((one) => {
      const quota = quotaOf(one);
      return quota ? [{ decided: one, quota }] : [];
    })
    .reduce<ReturnType<typeof nearestLimit>>(
      (least, one) => (least && least.quota.remaining <= one.quota.remaining ? least : one),
      undefined,
    );
}

function quotaOf({ decision }: Decided): Quota | undefined {
  return decision.outcome === 'withdrawn' ? undefined : decision.quota;
}

function outagePolicyOf(decision: Decided['decision']): string | undefined {
  return decision.outcome === 'withdrawn' ? undefined : decision.policy;
}

function durationOf(millis: number): { seconds: number; nanos: number } {
  const whole = Math.max(0, Math.ceil(millis));
  return { seconds: Math.floor(whole / 1000), nanos: (whole % 1000) * 1_000_000 };
}

function pairs(headers: readonly (string | number)[]): Headers {
  return headers.flatMap((name, i) =>
    i % 2 === 0 ? [{ key: String(name), value: String(headers[i + 1]) }] : [],
  );
}
