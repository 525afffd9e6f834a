import {
  OUTAGE_POLICY_HEADER,
  rateLimitHeadersIn,
  retryAfterSeconds,
  SHADOW_HEADER,
} from '../service/decision-headers.js';
import { isVerdict, type Peek, type Verdict } from '../limiter/limiter.js';
import { policyName } from '../rules/policy.js';
import { millisToRetry, shownLimit } from '../service/denying-limit.js';
import { type DecidedOrPeeked, passes } from './decide-together.js';
import { type DescriptorStatus, type RateLimitResponse, unitOf } from './messages.js';

type Headers = RateLimitResponse['response_headers_to_add'];

/** A check with a decision. A check that was withdrawn, since another was denied, has none. */
type Told = DecidedOrPeeked & { readonly decision: Verdict | Peek };

const addRateLimit = rateLimitHeadersIn('legacy');

/** Makes a reply from decisions, which are in the order of the descriptors. @param showsLimit whether it has the headers of limits */
export function replyTo(
  decided: readonly (DecidedOrPeeked | undefined)[],
  showsLimit: boolean,
): RateLimitResponse {
  const isApproved = decided.every((one) => one && passes(one));
  return {
    overall_code: isApproved ? 'OK' : 'OVER_LIMIT',
    statuses: decided.map(statusOf),
    response_headers_to_add: headersOf(decided.filter(isTold), showsLimit),
  };
}

function statusOf(decided: DecidedOrPeeked | undefined): DescriptorStatus {
  if (!isTold(decided)) return { code: 'UNKNOWN' };
  const { decision, policy, limit } = decided;
  const { quota } = decision;
  const code = passes(decided) ? 'OK' : 'OVER_LIMIT';
  if (!quota) return { code };
  const shown = shownLimit(quota, limit);
  const { name = policyName(policy), maximum, windowMillis, remaining, resetMillis } = shown;
  const millis = Math.max(0, Math.ceil(resetMillis));
  return {
    code,
    current_limit: { requests_per_unit: maximum, unit: unitOf(windowMillis), name },
    limit_remaining: remaining,
    duration_until_reset: {
      seconds: Math.floor(millis / 1000),
      nanos: (millis % 1000) * 1_000_000,
    },
  };
}

function headersOf(told: readonly Told[], showsLimit: boolean): Headers {
  const denied = told.filter((one) => !passes(one));
  const headers: (string | number)[] = [];
  const nearest = nearestLimit(denied.length > 0 ? denied : told);
  if (nearest?.decision.quota && showsLimit) {
    addRateLimit(headers, nearest.decision.quota, nearest.policy, nearest.limit);
  }
  if (denied.length > 0) {
    const waits = denied.flatMap(({ decision, limit, check }) =>
      decision.outcome === 'denied' ? [millisToRetry(decision, limit, check.hits)] : [],
    );
    headers.push('Retry-After', retryAfterSeconds(Math.max(...waits)));
  }
  const outagePolicy = told.find(({ decision }) => decision.outagePolicy)?.decision.outagePolicy;
  if (outagePolicy) headers.push(OUTAGE_POLICY_HEADER, outagePolicy);
  const isShadow = denied.length === 0 && told.some((one) => one.decision.outcome === 'denied');
  if (isShadow) headers.push(SHADOW_HEADER, 'denied');
  return pairs(headers);
}

/** The limit with the least left, which the client should see. A check that was not counted comes last. */
function nearestLimit(told: readonly Told[]): Told | undefined {
  if (told.length === 1) return told[0];
  const left = ({ decision: { quota }, limit }: Told): number =>
    quota ? shownLimit(quota, limit).remaining : Infinity;
  return told.toSorted((a, b) => left(a) - left(b))[0];
}

function isTold(decided: DecidedOrPeeked | undefined): decided is Told {
  return decided !== undefined && isVerdict(decided.decision);
}

function pairs(headers: readonly (string | number)[]): Headers {
  const pairs = [];
  for (let i = 0; i < headers.length; i += 2) {
    pairs.push({ key: String(headers[i]), value: String(headers[i + 1]) });
  }
  return pairs;
}
