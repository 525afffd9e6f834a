import type { Terms } from '../approvals.js';

/** A request that waits. */
export interface Queued extends Terms {
  readonly requestId: string;
  /** When it came, in milliseconds of a clock. */
  readonly arrival: number;
  /** How long its approval is held until its caller has got it. Undefined: its caller gets it at once. */
  readonly keepMillis: number | undefined;
}

/** The waiting requests of a key, and the order of their turns. `lua/queue/queue.lua` answers the same questions. */
export interface WaitingQueue {
  readonly size: number;
  /** Returns a copy from which requests may be taken. It is valid until this queue changes. */
  copy(): WaitingQueue;
  add(waiter: Queued): void;
  /** Returns a request that waits. */
  find(requestId: string): Queued | undefined;
  /** Replaces a request that waits with one that has its place. */
  replace(waiter: Queued): void;
  /** Returns the position of a request that waits, as in `PlaceInQueue`. */
  positionOf(requestId: string): number;
  /** @returns whether it waited */
  remove(requestId: string): boolean;
  /**
   * Takes requests, each when it is the next, until `approve` does not approve one.
   * @returns their ids, in this order
   */
  takeNext(approve: (waiter: Queued) => boolean): string[];
  /** Returns the requests whose turns come first, in this order. */
  first(most: number): Queued[];
}
