import type { Terms } from '../approvals.js';

/** A request that waits. */
export interface Queued extends Terms {
  readonly requestId: string;
  /** When it came, in milliseconds of a clock. */
  readonly arrival: number;
}

/** The waiting requests of a key, and the order of their turns. `lua/queue/queue.lua` answers the same questions. */
export interface WaitingQueue {
  readonly size: number;
  /** Returns a copy from which requests may be taken. It is valid until this queue changes. */
  copy(): WaitingQueue;
  add(waiter: Queued): void;
  /** @returns whether it waited */
  remove(requestId: string): boolean;
  /**
   * Takes requests, each when it is the next, until `approve` does not approve one.
   * @returns their ids, in this order
   */
  takeNext(approve: (waiter: Queued) => boolean): string[];
  /** The place of a request: 1 is the head. Undefined if it does not wait. */
  positionOf(requestId: string): number | undefined;
  /** Returns the requests whose turns come first, in this order. */
  first(most: number): Queued[];
}
