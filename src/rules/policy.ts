import { BOUNDS } from '../limiter/bounds.js';
import type { FurtherLimit } from '../limiter/further-limits.js';
import type { KeyLimits, OverrideCeilings } from '../limiter/limiter.js';
import { DEFAULT_NAME } from './rule.js';

/** Everything that rules say about a key. */
export interface DeclaredPolicy {
  readonly limits: KeyLimits;
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

/** The policy with its ceilings among the limits, so that the limiter drops greater overrides that were set before. */
export function completed(declared: DeclaredPolicy): KeyPolicy {
  const { limits } = declared;
  return {
    ...declared,
    limits: { ...limits, ceilings: ceilingsOf(declared) },
    item: policyItem(declared, limits),
  };
}

/** The limits in force for a key. */
interface LimitsInForce {
  readonly maxRequests: number;
  /** Undefined: as the policy says. */
  readonly windowMillis?: number | undefined;
  readonly further?: readonly FurtherLimit[] | undefined;
}

/**
 * The limits as draft-ietf-httpapi-ratelimit-headers-11 writes them: the key's own maximum, then the further limits.
 * The draft has only whole seconds for a window, so any other length is omitted.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 */
export function policyItem(
  policy: DeclaredPolicy,
  { maxRequests, windowMillis = policy.limits.windowMillis, further }: LimitsInForce,
): string {
  const own = limitItem(policyName(policy), maxRequests, windowMillis);
  if (!further) return own;
  const items = further.map((limit) => limitItem(limit.name, limit.maximum, limit.windowMillis));
  return [own, ...items].join(', ');
}

function limitItem(name: string, maximum: number, windowMillis: number): string {
  const length = windowMillis % 1000 === 0 ? `;w=${windowMillis / 1000}` : '';
  return `"${name}";q=${maximum}${length}`;
}

/** The name by which clients know a policy. */
export function policyName({ ruleName = DEFAULT_NAME }: DeclaredPolicy): string {
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
