import type { Waiter } from '../../limiter/waiter.js';
import type { EndedWait } from '../scripts/requests-codec.js';
import type { Ticket } from '../scripts/settle-codec.js';

/** Redis rounds up to 1, 2 or 5 times a power of ten: less than by this factor. */
const MOST_ROUNDED_UP = 2.5;

/** A waiter whose check was sent to Redis. */
export interface Place {
  readonly waiter: Waiter;
  /** When its check was sent, by the clock's milliseconds. */
  readonly askedAt: number;
  /** Redis may have lost the waiter, or approved it in a wake that was lost. */
  isDoubted: boolean;
}

interface TicketedPlace extends Place {
  readonly ticket: number;
}

/**
 * A replica's waiters of one key, by their claims: some have a ticket, others still ask for one. The kept ones of others
 * have approvals that Redis holds for their callers.
 */
export class Places {
  readonly #asking = new Map<string, Place>();
  readonly #ticketed = new Map<string, TicketedPlace>();
  readonly #order = new TicketOrder<TicketedPlace>();
  /** No longer in the queue. Without a ticket if the check was approved before it had one. */
  readonly #granted = new Map<string, Place | TicketedPlace>();
  /** How many of the requests whose callers have chosen their ids are here, by their ids. */
  readonly #named = new Map<string, number>();
  /** How many places with a ticket are kept. */
  #kept = 0;
  /** The claims of the waiters whose longest wait is over. */
  readonly #expired = new Set<string>();
  #doubted = 0;
  #longestHoldMillis = 0;

  get size(): number {
    return this.#asking.size + this.#ticketed.size + this.#granted.size;
  }

  /** How many places have a ticket. */
  get ticketed(): number {
    return this.#ticketed.size;
  }

  /** The longest time for which any place that was here is kept, or its approval is held. */
  get longestHoldMillis(): number {
    return this.#longestHoldMillis;
  }

  /** Whether any place with a ticket is kept. */
  get keepsAny(): boolean {
    return this.#kept > 0;
  }

  /** Whether a check of a request is here whose caller has chosen its id. */
  has(requestId: string): boolean {
    return this.#named.has(requestId);
  }

  /** The place with the lowest ticket. Undefined if nobody has a ticket. */
  get first(): { readonly ticket: number; readonly waiter: Waiter } | undefined {
    return this.#order.first;
  }

  /** Whether any place with a ticket is doubted. */
  get hasDoubted(): boolean {
    return this.#doubted > 0;
  }

  ask(waiter: Waiter, askedAt: number): void {
    this.#asking.set(waiter.claimOrId, { waiter, askedAt, isDoubted: false });
    this.#countNamed(waiter, 1);
    this.#longestHoldMillis = Math.max(this.#longestHoldMillis, longestHold(waiter));
  }

  /** The place of a request that has no ticket yet. */
  asking(claim: string): Place | undefined {
    return this.#asking.get(claim);
  }

  get(claim: string): Place | undefined {
    return this.#asking.get(claim) ?? this.#ticketed.get(claim) ?? this.#granted.get(claim);
  }

  hasTicket(claim: string): boolean {
    return this.#ticketed.has(claim);
  }

  isGranted(claim: string): boolean {
    return this.#granted.has(claim);
  }

  /** A copy of all. */
  waiters(): Waiter[] {
    const all = [this.#asking, this.#ticketed, this.#granted];
    return all.flatMap((places) => [...places.values()].map(({ waiter }) => waiter));
  }

  /** How many places with tickets here are before one. */
  countBefore(claim: string): number {
    const place = this.#ticketed.get(claim);
    return place ? this.#order.countBefore(place) : 0;
  }

  /** The claims of the requests that have a ticket, in the order of their tickets. */
  ticketedClaims(): string[] {
    return Array.from(this.#order, ({ waiter }) => waiter.claimOrId);
  }

  /** Gives a place its ticket. */
  giveTicket(claim: string, ticket: number): void {
    const place = this.#asking.get(claim);
    if (!place) return;
    this.#asking.delete(claim);
    this.#addTicketed(claim, { ...place, ticket });
  }

  /** The approval of a kept place is kept for its caller, so that it is in the queue no longer. */
  grant(claim: string): void {
    const place = this.#asking.get(claim) ?? this.#ticketed.get(claim);
    if (!place) return;
    this.#asking.delete(claim);
    this.#removeTicketed(claim);
    this.#granted.set(claim, place);
  }

  /** Such an approval may be lost. Its place is doubted, so that the next call tells what has become of it. */
  doubtGrant(claim: string): void {
    const place = this.#granted.get(claim);
    if (!place || !('ticket' in place)) return;
    this.#granted.delete(claim);
    place.isDoubted = true;
    this.#addTicketed(claim, place);
  }

  /** @returns the removed place, if there was one */
  remove(claim: string): Place | undefined {
    const place = this.get(claim);
    this.#removeTicketed(claim);
    this.#asking.delete(claim);
    this.#granted.delete(claim);
    this.#expired.delete(claim);
    if (place) this.#countNamed(place.waiter, -1);
    return place;
  }

  /**
   * Other checks or releases have ended the waits of checks. Their places stay.
   * @returns the claims of the waits on this replica
   */
  endWaits(ended: readonly EndedWait[]): string[] {
    const here = ended.filter(({ claim }) => this.get(claim) !== undefined);
    for (const { claim, why } of here) this.get(claim)?.waiter.conflict(why);
    return here.map(({ claim }) => claim);
  }

  /** The longest wait of a request is over. A place in the queue is doubted, since its turn may have come at this moment. */
  expire(claim: string): void {
    if (!this.#ticketed.has(claim) && !this.#granted.has(claim)) return;
    this.#expired.add(claim);
    this.doubt(claim);
  }

  /** Doubts one place, if it is there. */
  doubt(claim: string): void {
    const ticketed = this.#ticketed.get(claim);
    if (ticketed) this.#doubt(ticketed);
    const asking = this.#asking.get(claim);
    if (asking) asking.isDoubted = true;
  }

  /** Doubts the places of the requests among these ids whose callers have chosen them. Claims of checks are passed over. */
  doubtRequests(requestIds: readonly string[]): void {
    const named = new Set(requestIds.filter((id) => this.has(id)));
    if (named.size === 0) return;
    for (const { claimOrId, requestId } of this.waiters()) {
      if (named.has(requestId)) this.doubt(claimOrId);
    }
  }

  /** The places in the queue whose longest wait is over. */
  get expired(): Place[] {
    return [...this.#expired].flatMap((claim) => this.#ticketed.get(claim) ?? []);
  }

  /** The places whose longest wait is over, also if their turns have come and their callers are still to be told. */
  get expiredWithGrants(): Place[] {
    return [...this.#expired].flatMap((claim) => this.get(claim) ?? []);
  }

  /** Doubts all places, also those without a ticket, since their tickets may be older than the doubt. */
  doubtAll(): void {
    for (const place of this.#asking.values()) place.isDoubted = true;
    for (const place of this.#ticketed.values()) place.isDoubted = true;
    this.#doubted = this.#ticketed.size;
  }

  /** Takes the doubted places with the lowest tickets, in their order. The next call asks about them. */
  takeDoubted(most: number): Ticket[] {
    const taken: Ticket[] = [];
    if (this.#doubted === 0) return taken;
    for (const place of this.#order) {
      if (!place.isDoubted) continue;
      if (taken.length === most) break;
      place.isDoubted = false;
      taken.push(place);
    }
    this.#doubted -= taken.length;
    return taken;
  }

  #addTicketed(claim: string, place: TicketedPlace): void {
    this.#ticketed.set(claim, place);
    this.#order.add(place);
    if (place.isDoubted) this.#doubted += 1;
    if (place.waiter.keepMillis !== undefined) this.#kept += 1;
  }

  #removeTicketed(claim: string): void {
    const place = this.#ticketed.get(claim);
    if (!place) return;
    this.#ticketed.delete(claim);
    this.#order.remove(place);
    if (place.isDoubted) this.#doubted -= 1;
    if (place.waiter.keepMillis !== undefined) this.#kept -= 1;
  }

  #countNamed({ requestId, claim }: Waiter, by: 1 | -1): void {
    if (claim === undefined) return;
    const count = (this.#named.get(requestId) ?? 0) + by;
    if (count === 0) this.#named.delete(requestId);
    else this.#named.set(requestId, count);
  }

  #doubt(place: TicketedPlace): void {
    if (!place.isDoubted) this.#doubted += 1;
    place.isDoubted = true;
  }
}

/** The longest time for which an approval of a waiter is held, or its place is kept: Redis rounds that up. */
function longestHold({ holdMillis = 0, keepMillis = 0 }: Waiter): number {
  return Math.max(holdMillis, MOST_ROUNDED_UP * keepMillis);
}

/** Places with tickets, in the order of their tickets. Several checks of one request may have the same ticket. */
export class TicketOrder<Place extends { readonly ticket: number }> implements Iterable<Place> {
  readonly #inOrder: Place[] = [];

  get first(): Place | undefined {
    return this.#inOrder[0];
  }

  [Symbol.iterator](): Iterator<Place> {
    return this.#inOrder.values();
  }

  /** How many places are before one that is here. */
  countBefore(place: Place): number {
    return this.#inOrder.indexOf(place, this.#indexOf(place.ticket));
  }

  /** New tickets come in their order. A request that comes back has the ticket of before. */
  add(place: Place): void {
    const last = this.#inOrder.at(-1);
    if (!last || last.ticket <= place.ticket) this.#inOrder.push(place);
    else this.#inOrder.splice(this.#indexOf(place.ticket), 0, place);
  }

  /** Removes a place that is here. */
  remove(place: Place): void {
    this.#inOrder.splice(this.countBefore(place), 1);
  }

  /** The index of the first place whose ticket is not lower. */
  #indexOf(ticket: number): number {
    let [low, high] = [0, this.#inOrder.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#inOrder[middle]?.ticket ?? Infinity) < ticket) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
