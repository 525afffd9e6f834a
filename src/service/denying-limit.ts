import { type ExceededLimit, exceededLimit, limitBelow } from '../limiter/further-limits.js';
import type { Decision, Quota } from '../limiter/limiter.js';
import { type KeyPolicy, policyName } from '../rules/policy.js';

type Denial = Extract<Decision, { readonly outcome: 'denied' }>;

/**
 * The limit that has denied a check of a key with further limits.
 * @param hits those of the check
 * @returns undefined if the key has no further limits, or if no limit has too little left, as in a pause
 */
export function denyingLimit(decision: Decision, hits?: number): ExceededLimit | undefined {
  if (decision.outcome !== 'denied' || !decision.quota.further) return undefined;
  const { quota, reason } = decision;
  if (reason === 'paused') return undefined;
  return reason === 'too_many_hits' ? limitBelow(quota, hits ?? 1) : exceededLimit(quota, hits);
}

/** The name by which clients know a limit of a key. */
export function limitName({ name }: Pick<ExceededLimit, 'name'>, policy: KeyPolicy): string {
  return name ?? policyName(policy);
}

/**
 * When a check that was denied may be approved.
 * @param limit the limit that has denied it
 */
export function millisToRetry(
  { reason, quota, turnMillis }: Denial,
  limit: ExceededLimit | undefined,
): number {
  if (turnMillis !== undefined) return turnMillis;
  if (limit) return limit.resetMillis;
  const { resetMillis, further } = quota;
  if (reason !== 'paused' || !further) return resetMillis;
  // A limit that has room lets checks pass when the pause ends; a full one, when its window has ended as well.
  return Math.max(resetMillis, ...further.map((one) => one.resetMillis));
}

/** One limit of a key, with what it has left. */
export interface ShownLimit extends ExceededLimit {
  readonly remaining: number;
  /** Undefined of the key's own maximum. */
  readonly windowMillis?: number | undefined;
}

/** The limit that a client sees if it can see only one: the one that denied, else the first with the least left. */
export function shownLimit(quota: Quota, denying: ExceededLimit | undefined): ShownLimit {
  const { maxRequests, remaining, resetMillis, further } = quota;
  const own = { name: undefined, maximum: maxRequests, remaining, resetMillis };
  if (!further) return own;
  const limits: readonly ShownLimit[] = [own, ...further];
  if (denying) return limits.find(({ name }) => name === denying.name) ?? own;
  return limits.reduce((least, one) => (one.remaining < least.remaining ? one : least));
}
