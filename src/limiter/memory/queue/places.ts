import type { InstanceDetail } from '../../limiter.js';
import { MOST_LISTS_SHOWN } from '../../queue-order.js';
import { arrivalOf, type Queued } from './queued.js';
import type { WaitingQueue } from './waiting-queue.js';

/**
 * Returns who waits. All places are those of this process.
 * @param now in milliseconds of the clock by which they came
 * @param most of the waiting requests, those whose turns come first
 */
export function placesIn(
  queue: WaitingQueue,
  now: number,
  most: number,
): Pick<InstanceDetail, 'queue' | 'lists' | 'listCount' | 'replicas'> {
  const places = queue.size;
  return {
    queue: queue
      .first(most)
      .map((waiter) => ({ replica: undefined, waitedMillis: waitedMillis(waiter, now) })),
    ...listsIn(queue, now),
    replicas: places === 0 ? [] : [{ replica: undefined, places, leaseMillis: undefined }],
  };
}

/** Nothing of a queue with one list. */
function listsIn(queue: WaitingQueue, now: number): Pick<InstanceDetail, 'lists' | 'listCount'> {
  const lists = queue.lists();
  if (lists.length === 0) return {};
  const longest = lists
    .toSorted((a, b) => b.size - a.size || ticketOf(a.head) - ticketOf(b.head))
    .slice(0, MOST_LISTS_SHOWN);
  return {
    lists: longest.map(({ kind, name, size, head }) => ({
      kind,
      name,
      waiting: size,
      oldestMillis: waitedMillis(head, now),
    })),
    listCount: lists.length,
  };
}

function ticketOf(waiter: Queued | undefined): number {
  return waiter?.ticket ?? 0;
}

function waitedMillis(waiter: Queued | undefined, now: number): number {
  return waiter ? Math.max(0, now - arrivalOf(waiter)) : 0;
}
