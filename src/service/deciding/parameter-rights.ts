import type { Settings } from '../../config/settings.js';
import { BOUNDS } from '../../limiter/bounds.js';
import type {
  Amendment,
  CheckRequest,
  RejectedAmendment,
  RejectedReport,
} from '../../limiter/limiter.js';
import { calendarOf, hasSettableWindow } from '../../limiter/limits.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { DEFAULT_NAME } from '../../rules/rule.js';
import { invalidParameter, type ServiceError, serviceError } from '../errors.js';

/**
 * @throws ServiceError OVERRIDE_FORBIDDEN or OVERRIDE_TOO_LARGE if the policy forbids an override of the check,
 *   WINDOW_NOT_SETTABLE if the key's own limit is of a kind whose window requests can't set
 */
export function rejectForbiddenOverrides(check: CheckRequest, policy: KeyPolicy): void {
  const { maxRequests, maxRequestsInQueue, windowMillis } = check;
  if (maxRequests !== undefined) {
    const max = policy.maxRequestsCeiling;
    rejectForbidden('maxRequests', policy.requestsCanSetRate, maxRequests, max);
  }
  if (maxRequestsInQueue !== undefined) {
    const max = policy.maxRequestsInQueueCeiling;
    rejectForbidden('maxRequestsInQueue', policy.requestsCanModQueue, maxRequestsInQueue, max);
  }
  if (windowMillis !== undefined) {
    const [own] = policy.limits;
    if (!hasSettableWindow(own)) {
      const unit = calendarOf(own)?.unit;
      throw serviceError('WINDOW_NOT_SETTABLE', {
        algorithm: unit ? `calendar ${unit}` : own.algorithm.name,
      });
    }
    const max = policy.windowMillisCeiling;
    rejectForbidden('windowMillis', policy.requestsCanSetWindow, windowMillis, max);
  }
}

/**
 * @param holdMillis undefined if the request sets no hold
 * @throws ServiceError HOLD_FORBIDDEN or OVERRIDE_TOO_LARGE if the policy forbids the hold
 */
export function rejectForbiddenHold(
  { holdMillis }: Pick<CheckRequest, 'holdMillis'>,
  { requestsCanHold, maxHoldMillis }: KeyPolicy,
): void {
  if (holdMillis === undefined) return;
  if (!requestsCanHold) throw serviceError('HOLD_FORBIDDEN', {});
  rejectAbove('holdMillis', holdMillis, maxHoldMillis);
}

/** How long after its window an approval is kept for a caller that may not hold one: enough to come back at once. */
const GRACE_AFTER_WINDOW_MILLIS = 1000;

/**
 * Rejects a check that keeps its place for too long. Its approval is kept for as long as its place. If that is longer than a
 * window, the approval counts like a hold, and the check must be allowed to hold it.
 * @throws ServiceError OVERRIDE_TOO_LARGE
 */
export function rejectTooLongKeeping(
  { keepMillis }: Pick<CheckRequest, 'keepMillis'>,
  { limits, requestsCanHold, maxHoldMillis }: KeyPolicy,
  { MAX_KEEP_MILLIS }: Pick<Settings, 'MAX_KEEP_MILLIS'>,
): void {
  if (keepMillis === undefined) return;
  const shortestWindow = Math.min(...limits.map(({ windowMillis }) => windowMillis));
  const unheld = shortestWindow + GRACE_AFTER_WINDOW_MILLIS;
  const longest = requestsCanHold ? Math.max(unheld, maxHoldMillis) : unheld;
  rejectAbove('keepMillis', keepMillis, Math.min(longest, MAX_KEEP_MILLIS));
}

/**
 * @throws ServiceError HOLD_FORBIDDEN or OVERRIDE_TOO_LARGE if the policy forbids the hold that an amendment sets, or, for
 *   one that does nothing but renew, any hold
 */
export function rejectForbiddenRenewal(amendment: Amendment, policy: KeyPolicy): void {
  const renewsAlone = amendment.hits === undefined && amendment.holdMillis === undefined;
  if (renewsAlone && !policy.requestsCanHold) throw serviceError('HOLD_FORBIDDEN', {});
  rejectForbiddenHold(amendment, policy);
}

/** The error for an amendment that the limiter has rejected, by the bounds of the policy. */
export function rejectionOfAmendment(
  rejection: RejectedAmendment,
  { hits = 0 }: Amendment,
  { maxHoldMillis }: KeyPolicy,
): ServiceError {
  return rejection.rejected === 'hits'
    ? serviceError('CORRECTION_TOO_LARGE', { max: rejection.maxHits, hits })
    : serviceError('OVERRIDE_TOO_LARGE', { parameter: 'holdMillis', max: maxHoldMillis });
}

/** The error for a report that the limiter has rejected. @param limit the one that the report names */
export function rejectionOfReport(rejected: RejectedReport, limit = DEFAULT_NAME): ServiceError {
  if (rejected.rejected === 'key_full') return serviceError('KEY_FULL', {});
  const must =
    rejected.rejected === 'limit'
      ? `be one of the limits of the key: ${[DEFAULT_NAME, ...rejected.further].join(', ')}`
      : `name a fixed window; ${limit} is a ${rejected.algorithm}`;
  return invalidParameter('limit', must);
}

function rejectForbidden(parameter: string, isAllowed: boolean, value: number, max: number): void {
  if (!isAllowed) throw serviceError('OVERRIDE_FORBIDDEN', { parameter });
  rejectAbove(parameter, value, max);
}

function rejectAbove(parameter: string, value: number, max: number): void {
  if (value > max) throw serviceError('OVERRIDE_TOO_LARGE', { parameter, max });
}

/** @throws ServiceError KEY_UNKNOWN if no rule matches the key, and such keys are rejected */
export function rejectUnknownKey(
  { isKnown }: Pick<KeyPolicy, 'isKnown'>,
  { UNKNOWN_KEYS }: Pick<Settings, 'UNKNOWN_KEYS'>,
): void {
  if (!isKnown && UNKNOWN_KEYS === 'deny') throw serviceError('KEY_UNKNOWN', {});
}

/**
 * Checks the length of a key.
 * @param key decoded
 * @throws ServiceError INVALID_KEY_LENGTH
 */
export function parseKey(key: string): string {
  const bytes = Buffer.byteLength(key);
  const { min, max } = BOUNDS.keyBytes;
  if (bytes >= min && bytes <= max) return key;
  throw serviceError('INVALID_KEY_LENGTH', { min, max, bytes });
}
