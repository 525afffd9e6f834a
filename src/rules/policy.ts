import type { Settings } from '../config/settings.js';
import { BOUNDS } from '../limiter/bounds.js';
import { algorithmOf, forEachParameter } from '../limiter/kinds/kinds.js';
import type { KeyLimits, OverrideCeilings } from '../limiter/limiter.js';
import { type ForEachLimit, type LimitInForce, type Limits, ownLimit } from '../limiter/limits.js';
import type { QueueOrder } from '../limiter/queue-order.js';
import { DEFAULT_NAME } from './rule.js';

/** What the settings say about keys that no rule matches. Rules say the same about theirs. */
export function declaredBy(settings: Settings) {
  const parameters = forEachParameter('field', ({ setting }) => settings[setting]);
  const algorithm = algorithmOf(settings.ALGORITHM, parameters);
  const own = ownLimit(settings.WINDOW_MILLIS, settings.MAX_REQUESTS, algorithm);
  return {
    limits: [own] as Limits,
    maxRequestsInQueue: settings.MAX_REQUESTS_IN_QUEUE,
    /** The order between waiters of lanes or groups. Undefined: one list, first come, first served. */
    queueOrder: undefined as QueueOrder | undefined,
    requestsCanSetRate: settings.REQUESTS_CAN_SET_RATE,
    requestsCanModQueue: settings.REQUESTS_CAN_MOD_QUEUE,
    /** The greatest values that requests may set. */
    maxRequestsCeiling: settings.MAX_REQUESTS_CEILING,
    maxRequestsInQueueCeiling: settings.MAX_REQUESTS_IN_QUEUE_CEILING,
    requestsCanSetWindow: settings.REQUESTS_CAN_SET_WINDOW,
    /** The longest window that requests may set. */
    windowMillisCeiling: settings.WINDOW_MILLIS_CEILING,
    /** Whether a pause needs no scope of its own. */
    requestsCanPause: false,
    requestsCanHold: settings.REQUESTS_CAN_HOLD,
    /** The longest hold that requests may set. */
    maxHoldMillis: settings.MAX_HOLD_MILLIS,
    /** The most hits that a correction may set; undefined: ten times the maximum in force. */
    maxCorrectedHits: undefined as number | undefined,
    /** Whether a denied check takes what is left of the fixed windows that have denied it. */
    deniedTakesRest: false,
    /** How long checks of Envoy's protocol may wait, which can't ask for it themselves; 0 if they may not wait. */
    maxWaitMillis: 0,
    /** In shadow mode: checks are decided and counted, but never denied. */
    isShadow: false,
    /** Whether any rule matches. */
    isKnown: false,
    /** Whether a rule sets the maximum of the key's own limit. */
    hasRuledMaximum: false,
    /** The name of the last matching rule that has one. */
    ruleName: undefined as string | undefined,
  };
}

/** Everything that rules say about a key. */
export type DeclaredPolicy = Readonly<ReturnType<typeof declaredBy>>;

/** What applies to a key, with what follows from it: one object for all keys with the same policy. */
export interface KeyPolicy extends DeclaredPolicy, KeyLimits {
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
