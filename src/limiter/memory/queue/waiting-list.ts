import type { QueueListState } from '../../queue-order.js';
import type { LimitedRequest, RequestTerms } from '../../request.js';
import { microsOf } from '../limits/window.js';

/** A request that waits. */
export interface Queued extends LimitedRequest {
  /** When it began to wait, in microseconds, so that no two requests of a key have the same. */
  readonly ticket: number;
}

/** Somebody who waits, or would, as far as the order of turns goes. */
export type Ordered = RequestTerms & Pick<Queued, 'ticket'>;

/**
 * The waiters that a head stops which lacks room: all, or the waiters in some lists, of which its own is one. A lane is there by its
 * name.
 */
export type Stopped = 'all' | readonly string[];

const OF_GROUP = 'group:';

/** A group among those that are stopped. No lane has such a name. */
export function stoppedGroup(name: string): string {
  return OF_GROUP + name;
}

/** The name of a group among those that are stopped; undefined for a lane. */
export function groupIn(stopped: string): string | undefined {
  return stopped.startsWith(OF_GROUP) ? stopped.slice(OF_GROUP.length) : undefined;
}

/**
 * Returns the ticket of the next waiter of a key: its time of arrival in microseconds, raised if needed, so that no two
 * waiters of a key have the same. `lua/queue/queue.lua` gives out the same.
 * @param now in milliseconds
 * @param last the last ticket of the key, or the time when the key was created, in microseconds
 */
export function nextTicket(now: number, last: number): number {
  return Math.max(microsOf(now), last + 1);
}

/** The order of a waiter in its list: when it has come, less the head start of a lane inside its group; in microseconds. */
export function orderInList({ list, ticket }: Ordered): number {
  return list?.kind === 'group' ? ticket - (list.headStartMillis ?? 0) * 1000 : ticket;
}

/** Whether one waiter of a list has its turn before another. */
function isBefore(one: Queued, other: Queued): boolean {
  const [order, otherOrder] = [orderInList(one), orderInList(other)];
  return order === otherOrder ? one.requestId < other.requestId : order < otherOrder;
}

/** When a waiter came, in milliseconds. */
export function arrivalOf({ ticket }: { readonly ticket: number }): number {
  return Math.floor(ticket / 1000);
}

/** As many positions are exact: those behind them count waiters that have left the list. */
const EXACT_POSITIONS = 1000;

/** A waiter in a list, between its neighbours. */
export interface Entry {
  waiter: Queued;
  /** Grows with each waiter of the list. */
  readonly number: number;
  previous: Entry | undefined;
  next: Entry | undefined;
}

/** A list of a queue that has several: first come, first served. */
export class WaitingList {
  #head: Entry | undefined;
  #tail: Entry | undefined;
  #size = 0;
  #lastNumber = 0;
  /** Whether a waiter has come before others that were there. */
  #hasLanes = false;
  /** Of a group: the virtual time at which its head has its turn. */
  tag = 0;
  /** Of a group: where it is among the turns, or among those that are stopped. */
  index = 0;
  /** Of a group that its own limits or a pause stop: until when at least. */
  stoppedUntil: number | undefined;

  /** @param name '' for the only list of its kind */
  constructor(
    readonly kind: QueueListState['kind'],
    readonly name: string,
  ) {}

  get size(): number {
    return this.#size;
  }

  get head(): Queued | undefined {
    return this.#head?.waiter;
  }

  /** Adds a waiter behind those that have their turns before it. */
  add(waiter: Queued): Entry {
    let previous = this.#tail;
    while (previous && isBefore(waiter, previous.waiter)) previous = previous.previous;
    const next = previous ? previous.next : this.#head;
    this.#lastNumber += 1;
    const entry = { waiter, number: this.#lastNumber, previous, next };
    if (previous) previous.next = entry;
    else this.#head = entry;
    if (next) next.previous = entry;
    else this.#tail = entry;
    this.#hasLanes ||= next !== undefined;
    this.#size += 1;
    return entry;
  }

  remove({ previous, next }: Entry): void {
    if (previous) previous.next = next;
    else this.#head = next;
    if (next) next.previous = previous;
    else this.#tail = previous;
    this.#size -= 1;
  }

  /** Leaves the entries as they are, of which copies of the list may have some. */
  takeHead(): void {
    this.#head = this.#head?.next;
    if (!this.#head) this.#tail = undefined;
    this.#size -= 1;
  }

  /** Frees the entries that were taken. No copy may be used any more. */
  forgetTaken(): void {
    if (this.#head) this.#head.previous = undefined;
  }

  /** Whether an entry of the list was not taken by {@link takeHead}. */
  has({ waiter }: Entry): boolean {
    return this.#head !== undefined && !isBefore(waiter, this.#head.waiter);
  }

  /** Returns the position of an entry, as in `PlaceInQueue`. */
  positionOf(wanted: Entry): number {
    let position = 0;
    for (let entry = this.#head; entry; entry = entry.next) {
      position += 1;
      if (entry === wanted) break;
      if (position === EXACT_POSITIONS && !this.#hasLanes)
        return position + wanted.number - entry.number;
    }
    return position;
  }

  /** Returns a copy. Heads may be taken from it, until an entry is added here or removed. */
  copy(): WaitingList {
    const copy = new WaitingList(this.kind, this.name);
    copy.#head = this.#head;
    copy.#tail = this.#tail;
    copy.#size = this.#size;
    copy.#lastNumber = this.#lastNumber;
    copy.#hasLanes = this.#hasLanes;
    return copy;
  }
}
