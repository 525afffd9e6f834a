import type { Settings } from '../config/settings.js';
import { OUTAGE_POLICY_HEADER, retryAfterSeconds, SHADOW_HEADER } from '../http/replies/headers.js';
import { rateLimitHeadersIn } from '../http/replies/rate-limit-headers.js';
import type { Decision } from '../limiter/limiter.js';
import { policyName } from '../rules/policy.js';
import { type Decided, passes } from './decide-together.js';
import { type DescriptorStatus, type RateLimitResponse, unitOf } from './messages.js';

type Headers = RateLimitResponse['response_headers_to_add'];

/** One that was decided. One that was withdrawn since another was refused was not. */
type Told = Decided & { readonly decision: Exclude<Decision, { readonly outcome: 'withdrawn' }> };

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
      statuses: decided.map(statusOf),
      response_headers_to_add: headersOf(decided.filter(isTold), showsLimit),
    };
  };
}

function statusOf(decided: Decided | undefined): DescriptorStatus {
  if (!isTold(decided)) return { code: 'UNKNOWN' };
  const { decision, policy } = decided;
  const { quota } = decision;
  return {
    code: passes(decided) ? 'OK' : 'OVER_LIMIT',
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

function headersOf(told: readonly Told[], showsLimit: boolean): Headers {
  const refused = told.filter((one) => !passes(one));
  const headers: (string | number)[] = [];
  const nearest = nearestLimit(refused.length > 0 ? refused : told);
  if (nearest?.decision.quota && showsLimit) {
    addRateLimit(headers, nearest.decision.quota, nearest.policy);
  }
  const turns = refused.flatMap(({ decision }) =>
    decision.outcome === 'denied' ? [decision.turnMillis ?? decision.quota.resetMillis] : [],
  );
  if (turns.length > 0) headers.push('Retry-After', retryAfterSeconds(Math.max(...turns)));
  const outagePolicy = told.find(({ decision }) => decision.outagePolicy)?.decision.outagePolicy;
  if (outagePolicy) headers.push(OUTAGE_POLICY_HEADER, outagePolicy);
  const isShadow = refused.length === 0 && told.some((one) => one.decision.outcome === 'denied');
  if (isShadow) headers.push(SHADOW_HEADER, 'denied');
  return pairs(headers);
}

/** The one that has the least left, of which a client should know. One of which nothing was counted has all. */
function nearestLimit(told: readonly Told[]): Told | undefined {
  const left = ({ decision }: Told): number => decision.quota?.remaining ?? Infinity;
  return told.toSorted((a, b) => left(a) - left(b))[0];
}

function isTold(decided: Decided | undefined): decided is Told {
  return decided !== undefined && decided.decision.outcome !== 'withdrawn';
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
