import type { Waiter } from '../../limiter/waiter.js';
import type { Ticket } from '../scripts/settle-codec.js';

/** A waiter that Redis has been asked about. */
export interface Place {
  readonly waiter: Waiter;
  /** When its check was sent, by the clock's milliseconds. */
  readonly askedAt: number;
  /** Redis may have lost it, or approved it without our hearing of it. */
  isDoubted: boolean;
}

interface TicketedPlace extends Place {
  readonly ticket: number;
}

/** A replica's places in the queue of one key: those that have asked for one, and those that have one. */
export class Places {
  readonly #asking = new Map<string, Place>();
  /** In the order of their tickets. */
  #ticketed = new Map<string, TicketedPlace>();
  #highestTicket = -Infinity;
  #doubted = 0;

  get size(): number {
    return this.#asking.size + this.#ticketed.size;
  }

  /** Undefined where nobody has one. */
  get lowestTicket(): number | undefined {
    const [first] = this.#ticketed.values();
    return first?.ticket;
  }

  /** Whether any that has a ticket is doubted. */
  get hasDoubted(): boolean {
    return this.#doubted > 0;
  }

  ask(waiter: Waiter, askedAt: number): void {
    this.#asking.set(waiter.requestId, { waiter, askedAt, isDoubted: false });
  }

  /** One that has no ticket yet. */
  asking(requestId: string): Place | undefined {
    return this.#asking.get(requestId);
  }

  hasTicket(requestId: string): boolean {
    return this.#ticketed.has(requestId);
  }

  *waiters(): Iterable<Waiter> {
    for (const { waiter } of this.#asking.values()) yield waiter;
    for (const { waiter } of this.#ticketed.values()) yield waiter;
  }

  /** The ids of those that have a ticket. */
  ticketedIds(): string[] {
    return [...this.#ticketed.keys()];
  }

  /** Gives a place that asks its ticket. */
  giveTicket(requestId: string, ticket: number): void {
    const place = this.#asking.get(requestId);
    if (!place) return;
    this.#asking.delete(requestId);
    this.#ticketed.set(requestId, { ...place, ticket });
    if (place.isDoubted) this.#doubted += 1;
    if (ticket < this.#highestTicket) this.#sort();
    else this.#highestTicket = ticket;
  }

  /** @returns what was there */
  remove(requestId: string): Place | undefined {
    const place = this.#asking.get(requestId) ?? this.#ticketed.get(requestId);
    if (this.#ticketed.delete(requestId) && place?.isDoubted) this.#doubted -= 1;
    this.#asking.delete(requestId);
    if (this.#ticketed.size === 0) this.#highestTicket = -Infinity;
    return place;
  }

  /** Doubts all, those too that ask: their tickets may be from before what made us doubt. */
  doubtAll(): void {
    for (const place of this.#asking.values()) place.isDoubted = true;
    for (const place of this.#ticketed.values()) place.isDoubted = true;
    this.#doubted = this.#ticketed.size;
  }

  /** Doubts those whose tickets have left the queue although we have heard of no approval. */
  doubtBelow(ticket: number): void {
    for (const place of this.#ticketed.values()) {
      if (place.ticket >= ticket) return;
      if (!place.isDoubted) this.#doubted += 1;
      place.isDoubted = true;
    }
  }

  /** The doubted with the lowest tickets, in their order; doubted no more, since Redis is to be asked. */
  takeDoubted(most: number): Ticket[] {
    const taken: Ticket[] = [];
    if (this.#doubted === 0) return taken;
    for (const [requestId, place] of this.#ticketed) {
      if (!place.isDoubted) continue;
      if (taken.length === most) break;
      place.isDoubted = false;
      taken.push({ requestId, ticket: place.ticket });
    }
    this.#doubted -= taken.length;
    return taken;
  }

  /** Tickets come in the order of calls, but for a call that had to be sent again. */
  #sort(): void {
    this.#ticketed = new Map([...this.#ticketed].sort(([, a], [, b]) => a.ticket - b.ticket));
  }
}
