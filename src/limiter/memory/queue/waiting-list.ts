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
  /** Of a group: the virtual time at which its head has its turn. */
  tag = 0;
  /** Of a group: where it is among the turns. */
  index = 0;

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

  append(waiter: Queued): Entry {
    this.#lastNumber += 1;
    const entry = { waiter, number: this.#lastNumber, previous: this.#tail, next: undefined };
    if (this.#tail) this.#tail.next = entry;
    else this.#head = entry;
    this.#tail = entry;
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
  has({ number }: Entry): boolean {
    return this.#head !== undefined && number >= this.#head.number;
  }

  /** Returns the position of an entry, as in `PlaceInQueue`. */
  positionOf(wanted: Entry): number {
    let position = 0;
    for (let entry = this.#head; entry; entry = entry.next) {
      position += 1;
      if (entry === wanted) break;
      if (position === EXACT_POSITIONS) return position + wanted.number - entry.number;
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
    return copy;
  }
}
