import { BOUNDS } from '../limiter/bounds.js';
import type { KeyLimits, OverrideCeilings } from '../limiter/limiter.js';
import type { ForEachLimit, LimitInForce } from '../limiter/limits.js';
import type { QueueOrder } from '../limiter/queue-order.js';
import { DEFAULT_NAME } from './rule.js';

/** Everything that rules say about a key. */
export interface DeclaredPolicy extends KeyLimits {
  /** The order between waiters of lanes or groups. Undefined: one list, first come, first served. */
  readonly queueOrder: QueueOrder | undefined;
  readonly requestsCanSetRate: boolean;
  readonly requestsCanModQueue: boolean;
  /** The greatest values that requests may set. */
  readonly maxRequestsCeiling: number;
  readonly maxRequestsInQueueCeiling: number;
  readonly requestsCanSetWindow: boolean;
  /** The longest window that requests may set. */
  readonly windowMillisCeiling: number;
  /** Whether a pause needs no scope of its own. */
  readonly requestsCanPause: boolean;
  readonly requestsCanHold: boolean;
  /** The longest hold that requests may set. */
  readonly maxHoldMillis: number;
  /** The most hits that a correction may set; undefined: ten times the maximum in force. */
  readonly maxCorrectedHits: number | undefined;
  /** Whether a denied check takes what is left of the fixed windows that have denied it. */
  readonly deniedTakesRest: boolean;
  /** How long checks of Envoy's protocol may wait, which can't ask for it themselves; 0 if they may not wait. */
  readonly maxWaitMillis: number;
  /** In shadow mode: checks are decided and counted, but never denied. */
  readonly isShadow: boolean;
  /** Whether any rule matches. */
  readonly isKnown: boolean;
  /** The name of the last matching rule that has one. */
  readonly ruleName: string | undefined;
}

/** What applies to a key, with what follows from it: one object for all keys with the same policy. */
export interface KeyPolicy extends DeclaredPolicy {
  /** The value of `RateLimit-Policy` while the limits in force are those of the rules. */
  readonly item: string;
}

const NONE = -1;

/** Returns the policy with its ceilings, above which the limiter drops overrides that were set before. */
export function completed(declared: DeclaredPolicy): KeyPolicy {
  return {
    ...declared,
    ceilings: ceilingsOf(declared),
    item: policyItem(declared, declared.limits),
  };
}

/**
 * Returns the limits in force as draft-ietf-httpapi-ratelimit-headers-11 writes them. The draft has only whole seconds
 * for a window, so any other length is omitted.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 */
export function policyItem(policy: DeclaredPolicy, limits: ForEachLimit<LimitInForce>): string {
  return limits
    .map(({ name = policyName(policy), maximum, windowMillis }) => {
      const length = windowMillis % 1000 === 0 ? `;w=${windowMillis / 1000}` : '';
      return `"${name}";q=${maximum}${length}`;
    })
    .join(', ');
}

/** Returns the name by which clients know a policy, and the own limits of its keys. */
export function policyName({ ruleName = DEFAULT_NAME }: Pick<DeclaredPolicy, 'ruleName'>): string {
  return ruleName;
}

/** @returns undefined if requests may set any valid value */
function ceilingsOf(policy: DeclaredPolicy): OverrideCeilings | undefined {
  const maxRequests = policy.requestsCanSetRate ? policy.maxRequestsCeiling : NONE;
  const maxRequestsInQueue = policy.requestsCanModQueue ? policy.maxRequestsInQueueCeiling : NONE;
  const windowMillis = policy.requestsCanSetWindow ? policy.windowMillisCeiling : NONE;
  const isBounded =
    maxRequests < BOUNDS.maxRequests.max ||
    maxRequestsInQueue < BOUNDS.maxRequestsInQueue.max ||
    windowMillis < BOUNDS.windowMillis.max;
  return isBounded ? { maxRequests, maxRequestsInQueue, windowMillis } : undefined;
}
