import { LONGEST_TIMER_MILLIS } from './timers.js';

/** The first pause before an unreachable server is tried again. */
const FIRST_MILLIS = 100;
/** How much longer each further pause is: the default number of retries bridges a restart of a second. */
const GROWTH = 3;
/** The part by which a pause may be longer, so that many clients do not retry at once. */
const JITTER = 0.2;

/**
 * The length of a pause before a request is sent again, in ms. It is never shorter than `Retry-After`.
 * @param retryAfterSeconds what the answer asks for, if it asks
 * @param pauses how many pauses there were before; without `Retry-After`, or if it is 0, each is longer than the last
 * @returns Infinity if no timer can be as long
 */
export function pauseMillis(retryAfterSeconds: number | undefined, pauses: number): number {
  const least = retryAfterSeconds ? retryAfterSeconds * 1000 : FIRST_MILLIS * GROWTH ** pauses;
  const millis = least * (1 + JITTER * Math.random());
  return millis <= LONGEST_TIMER_MILLIS ? millis : Infinity;
}
