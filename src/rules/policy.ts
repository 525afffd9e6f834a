import { BOUNDS } from '../limiter/bounds.js';
import type { KeyLimits, OverrideCeilings } from '../limiter/limiter.js';

/** Everything that rules say of a key. */
export interface KeyPolicy {
  readonly limits: KeyLimits;
  readonly requestsCanSetRate: boolean;
  readonly requestsCanModQueue: boolean;
  /** The greatest values that requests may set. */
  readonly maxRequestsCeiling: number;
  readonly maxRequestsInQueueCeiling: number;
  /** Checks are decided and counted, and everybody passes. */
  readonly isShadow: boolean;
  /** Whether any rule matches. */
  readonly isKnown: boolean;
  /** The name of the last matching rule that has one. */
  readonly ruleName: string | undefined;
}

const NONE = -1;

/** The policy with the ceilings of overrides among its limits, so that the limiter forgets those set before. */
export function withCeilings(policy: KeyPolicy): KeyPolicy {
  return { ...policy, limits: { ...policy.limits, ceilings: ceilingsOf(policy) } };
}

/** @returns undefined where requests may set whatever there may be */
function ceilingsOf(policy: KeyPolicy): OverrideCeilings | undefined {
  const maxRequests = policy.requestsCanSetRate ? policy.maxRequestsCeiling : NONE;
  const maxRequestsInQueue = policy.requestsCanModQueue ? policy.maxRequestsInQueueCeiling : NONE;
  const isBounded =
    maxRequests < BOUNDS.maxRequests.max || maxRequestsInQueue < BOUNDS.maxRequestsInQueue.max;
  return isBounded ? { maxRequests, maxRequestsInQueue } : undefined;
}
