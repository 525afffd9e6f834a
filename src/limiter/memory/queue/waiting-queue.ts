import type { QueueList } from '../../queue-order.js';
import type { Joining, Queued, Stopped, Waiting } from './queued.js';
import type { WaitingList } from './waiting-list.js';

/** The waiting requests of a key, and the order of their turns. `lua/queue/queue.lua` answers the same questions. */
export interface WaitingQueue {
  readonly size: number;
  /** The ticket of the waiter that joined last; before, when the key was created, in microseconds. */
  readonly lastTicket: number;
  /** Returns a copy from which requests may be taken. It is valid until this queue changes. */
  copy(): WaitingQueue;
  /** A request joins the end of its list. @param now in milliseconds */
  join(now: number, waiter: Joining): void;
  /** Returns a request that waits. */
  find(requestId: string): Queued | undefined;
  /** Replaces a request that waits with one that has its place. */
  replace(waiter: Queued): void;
  /** @returns whether it waited */
  remove(requestId: string): boolean;
  /**
   * Takes requests, each when it is the next, until all are stopped.
   * @param approve returns undefined if it approves a request, and otherwise the waiters that the request stops
   * @returns their ids, in this order
   */
  takeNext(approve: (waiter: Queued) => Stopped | undefined): string[];
  /**
   * Returns the requests that would be approved next if they had room: the head of the queue, and behind it the heads of
   * lists that are not stopped.
   * @param stoppedBy returns the waiters that a head stops
   */
  stoppedHeads(stoppedBy: (head: Queued) => Stopped): Queued[];
  /**
   * Whether a check that joined now would be approved next if it had room. It passes only those who would wait behind it,
   * and those who wait for room that it does not need.
   * @param stoppedBy as for {@link stoppedHeads}
   */
  isNext(now: number, check: Waiting, stoppedBy: (head: Queued) => Stopped): boolean;
  /** A check is approved that would be next, as if it had joined and had its turn. */
  approvedAtOnce(check: Waiting): void;
  /** Returns the position of a request in its list, as in `PlaceInQueue`; undefined if it does not wait. */
  positionOf(requestId: string): number | undefined;
  /** How many wait in a list. @param list undefined: the list of the waiters without a lane or a group */
  countIn(list: QueueList | undefined): number;
  /** Returns the requests whose turns come first, in this order. */
  first(most: number): Queued[];
  /** Returns the lists in which somebody waits; none if all wait in one list, first come, first served. */
  lists(): readonly WaitingList[];
}
