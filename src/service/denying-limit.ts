import { type ExceededLimit, exceededLimit, limitBelow } from '../limiter/exceeded-limit.js';
import type { Decision, Quota } from '../limiter/limiter.js';
import { type KeyPolicy, policyName } from '../rules/policy.js';

type Denial = Extract<Decision, { readonly outcome: 'denied' }>;

/** A limit of a key with further limits. */
interface NamedLimit {
  /** As clients know it. It has no characters that JSON would escape. */
  readonly name: string;
  readonly maximum: number;
  readonly resetMillis: number;
}

/** The limit that has denied a check of a key with further limits. */
export interface DenyingLimit extends NamedLimit {
  /** Whether it is the key's own maximum per window. */
  readonly isOwn: boolean;
}

/**
 * @param hits those of the check
 * @returns undefined if the key has no further limits, or if no limit has too little left, as in a pause
 */
export function denyingLimit(
  decision: Decision,
  policy: KeyPolicy,
  hits?: number,
): DenyingLimit | undefined {
  if (decision.outcome !== 'denied' || !decision.quota.further) return undefined;
  const exceeded = exceededBy(decision, hits);
  if (!exceeded) return undefined;
  const { name, maximum, resetMillis } = exceeded;
  const isOwn = name === undefined;
  return { name: name ?? policyName(policy), isOwn, maximum, resetMillis };
}

function exceededBy({ quota, reason }: Denial, hits = 1): ExceededLimit | undefined {
  if (reason === 'paused') return undefined;
  return reason === 'too_many_hits' ? limitBelow(quota, hits) : exceededLimit(quota, hits);
}

/**
 * When a check that was denied may be approved.
 * @param limit the limit that has denied it
 */
export function millisToRetry(
  { reason, quota, turnMillis }: Denial,
  limit: DenyingLimit | undefined,
): number {
  if (turnMillis !== undefined) return turnMillis;
  if (limit) return limit.resetMillis;
  const { resetMillis, further } = quota;
  if (reason !== 'paused' || !further) return resetMillis;
  // A limit that has room lets checks pass when the pause ends; a full one, when its window has ended as well.
  return Math.max(resetMillis, ...further.map((one) => one.resetMillis));
}

/** One limit of a key, with what it has left. */
export interface ShownLimit extends NamedLimit {
  readonly remaining: number;
  readonly windowMillis: number;
}

/** The limit that a client sees if it can see only one: the one that denied, else the first with the least left. */
export function shownLimit(
  { maxRequests, remaining, resetMillis, further }: Quota,
  policy: KeyPolicy,
  denying: DenyingLimit | undefined,
): ShownLimit {
  const name = policyName(policy);
  const { windowMillis } = policy.limits;
  const own = { name, maximum: maxRequests, remaining, resetMillis, windowMillis };
  if (!further || denying?.isOwn) return own;
  if (denying) return further.find((limit) => limit.name === denying.name) ?? own;
  return further.reduce<ShownLimit>(
    (least, limit) => (limit.remaining < least.remaining ? limit : least),
    own,
  );
}
