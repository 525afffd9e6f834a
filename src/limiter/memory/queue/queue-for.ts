import type { QueueList } from '../../queue-order.js';
import { FifoQueue } from './fifo-queue.js';
import { OrderedQueue } from './ordered-queue.js';
import type { WaitingQueue } from './waiting-queue.js';

/**
 * Returns the queue that a waiter of a list can join, with all that wait in a queue: another one if the first lane or group
 * comes, or if nobody waits in any.
 */
export function queueFor(list: QueueList | undefined, queue: WaitingQueue): WaitingQueue {
  const hasLists = queue instanceof OrderedQueue;
  if (list) return hasLists ? queue : OrderedQueue.of(queue);
  return hasLists && queue.size === 0 ? new FifoQueue(queue.lastTicket) : queue;
}
