import { microsOf } from '../micros.js';

/**
 * Returns the ticket of the next waiter of a key: its time of arrival in microseconds, raised if needed, so that no two
 * waiters of a key have the same. `lua/queue/queue.lua` gives out the same.
 * @param now in milliseconds
 * @param last the last ticket of the key, or the time when the key was created, in microseconds
 */
export function nextTicket(now: number, last: number): number {
  return Math.max(microsOf(now), last + 1);
}

/** When a waiter came, in milliseconds. */
export function arrivalOf({ ticket }: { readonly ticket: number }): number {
  return Math.floor(ticket / 1000);
}
