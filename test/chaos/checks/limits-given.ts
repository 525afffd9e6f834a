import { WINDOW_MILLIS } from '../limits.js';
import type { Evidence } from './evidence.js';

/** Limits that some replica went by, and no rules gave it then. */
export function undeclaredLimits({ account, maxima }: Evidence): string[] {
  return account.limits.flatMap(({ key, at, maximum, windowMillis }) =>
    maxima.allows(key, maximum, at) && windowMillis === WINDOW_MILLIS
      ? []
      : [`${key} was given ${maximum} per ${windowMillis} ms at ${at}, as no rules had it then`],
  );
}
