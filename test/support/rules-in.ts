import type { KeyLimits } from '../../src/limiter/limiter.js';
import {
  calendarOf,
  forEachLimit,
  type Limit,
  type LimitInForce,
} from '../../src/limiter/limits.js';
import { limitsIn } from '../../src/redis/scripts/limits-codec.js';

/**
 * Returns the limits in a text of `encodeLimits`, as rules.
 * @throws Error for a calendar, of which the text has only the name
 */
export function rulesIn(text: string): KeyLimits {
  const { limits, maxRequestsInQueue } = limitsIn(text);
  return { limits: forEachLimit(limits, declared), maxRequestsInQueue };
}

function declared(limit: LimitInForce): Limit {
  const { algorithm } = limit;
  if (calendarOf(limit)) throw new Error('a calendar in a text of limits');
  return { ...limit, algorithm: algorithm as Limit['algorithm'] };
}
