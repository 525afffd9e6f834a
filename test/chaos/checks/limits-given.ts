import { overlaps } from '../faults/fault.js';
import { WINDOW_MILLIS } from '../limits.js';
import type { Evidence } from './evidence.js';

/**
 * Limits that some replica went by, and no rules gave it then. A primary that stood still, and is none any more, still
 * runs the calls that came to it before.
 */
export function undeclaredLimits({ account, maxima, faults }: Evidence): string[] {
  return account.limits.flatMap(({ key, at, maximum, windowMillis }) => {
    const losses = faults.filter((fault) => fault.loses !== undefined && overlaps(fault, at, at));
    const sentFrom = Math.min(at, ...losses.map(({ beganAt }) => beganAt));
    return maxima.allows(key, maximum, sentFrom, at) && windowMillis === WINDOW_MILLIS
      ? []
      : [`${key} was given ${maximum} per ${windowMillis} ms at ${at}, as no rules had it then`];
  });
}
