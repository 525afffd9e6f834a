import type { LimitedRequest, RequestTerms } from '../../request.js';
import { microsOf } from '../micros.js';

/** A request that waits. */
export interface Queued extends LimitedRequest {
  readonly ticket: number;
}

/** Somebody who waits, or would, as far as the order of turns goes. */
export type Ordered = RequestTerms & Pick<Queued, 'ticket'>;

/** The waiters that a head stops which lacks room: all, or the waiters in some lanes, of which its own is one. */
export type Stopped = 'all' | readonly string[];

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
