import type { Decision, Peek, Quota } from '../limiter/limiter.js';
import { capacityOf, type LimitQuota, takenOf } from '../limiter/limits.js';
import { type KeyPolicy, policyName } from '../rules/policy.js';
import { kindOf } from '../limiter/kinds/kinds.js';

type Denial = Extract<Decision, { readonly outcome: 'denied' }>;

/** A limit as clients know it. Its name has no characters that JSON would escape. */
export interface NamedLimit extends LimitQuota {
  readonly name: string;
}

/**
 * Returns the limit that has denied a check, or would deny it.
 * @param hits those of the check
 * @returns undefined if the key has only one limit, or if no limit has too little left, as in a pause
 */
export function denyingLimit(
  decision: Decision | Peek,
  policy: KeyPolicy,
  hits = 1,
): NamedLimit | undefined {
  if (decision.outcome !== 'denied' || decision.reason === 'paused') return undefined;
  const { quota, reason } = decision;
  if (quota.limits.length === 1) return undefined;
  const limit = (reason === 'too_many_hits' ? limitBelow : exceededLimit)(quota, hits);
  return limit && { ...limit, name: limit.name ?? policyName(policy) };
}

/**
 * Returns when a check that was denied may be approved, in milliseconds from now on.
 * @param limit the limit that has denied it, if its key has several
 * @param hits those of the check
 */
export function millisToRetry(
  { reason, quota: { limits, groupPausedMillis = 0 }, turnMillis }: Denial,
  limit: LimitQuota | undefined,
  hits?: number,
): number {
  if (turnMillis !== undefined) return turnMillis;
  if (reason !== 'paused') return millisToFit(limit ?? limits[0], hits);
  // A full limit lets checks pass when its window has ended as well, and one that has room when the pause ends: that is its reset if
  // the whole key is paused.
  const stopping = limits.filter(({ remaining }) => groupPausedMillis === 0 || remaining === 0);
  return Math.max(groupPausedMillis, ...stopping.map(({ resetMillis }) => resetMillis));
}

/**
 * Returns the limit that a client sees if it can see only one: the one that denied, else the first with the least left. That has no
 * name if it is the key's own.
 */
export function shownLimit({ limits }: Quota, denying: NamedLimit | undefined): LimitQuota {
  if (denying || limits.length === 1) return denying ?? limits[0];
  return limits.reduce((one, other) => (other.remaining < one.remaining ? other : one));
}

/**
 * Returns the limit that denies a check: of the limits that have too little left, the one that has room last; undefined
 * if no limit has too little left, as for a check that may not overtake the queue.
 * @param hits those of the check
 */
export function exceededLimit({ limits }: Quota, hits = 1): LimitQuota | undefined {
  const exceeded = limits.filter((limit) => takenOf(limit, hits) > limit.remaining);
  return exceeded.toSorted((a, b) => millisToFit(b, hits) - millisToFit(a, hits))[0];
}

/**
 * Returns when a limit that has too little left for a check may have room for it, in milliseconds from now on. One
 * with a pace drains evenly from the time on at which it has room for one more hit.
 * @param hits those of the check
 */
function millisToFit(limit: LimitQuota, hits = 1): number {
  const { algorithm, maximum, windowMillis, remaining, resetMillis } = limit;
  if (!kindOf(algorithm).hasPace) return resetMillis;
  // More hits than the capacity never fit.
  const missing = Math.min(takenOf(limit, hits), capacityOf(limit)) - remaining - 1;
  if (missing <= 0) return resetMillis;
  return resetMillis + (missing * windowMillis) / maximum;
}

/** Returns the limit of which a check with this number of hits takes more than may ever count at once. */
export function limitBelow({ limits }: Quota, hits: number): LimitQuota | undefined {
  return limits.find((limit) => takenOf(limit, hits) > capacityOf(limit));
}
