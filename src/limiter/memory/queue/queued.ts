import type { Terms } from '../terms.js';

/** A request that waits. */
export interface Queued extends Terms {
  readonly requestId: string;
  /** Says when it came, see `nextTicket`. */
  readonly ticket: number;
  /** How long its approval is kept until its caller has got it. Undefined: its caller gets it at once. */
  readonly keepMillis: number | undefined;
}

/** What joins a queue, which gives it its ticket. */
export type Joining = Omit<Queued, 'ticket'>;

/** Somebody who waits, or would. */
export type Waiting = Pick<Terms, 'hits' | 'holdMillis' | 'list'>;

/** The same, as far as the order of turns goes. */
export type Ordered = Waiting & Pick<Queued, 'ticket'>;

/** The waiters that a head stops which lacks room: all, or the waiters in some lanes, of which its own is one. */
export type Stopped = 'all' | readonly string[];
