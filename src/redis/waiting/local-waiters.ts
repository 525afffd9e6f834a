import type { Waiter } from '../../limiter/waiter.js';
import type { EndedWait } from '../scripts/requests-codec.js';
import type { Ticket } from '../scripts/settle-codec.js';

/** Redis rounds up to 1, 2 or 5 times a power of ten: less than by this factor. */
const MOST_ROUNDED_UP = 2.5;

/** A waiter whose check was sent to Redis. */
export interface LocalWaiter {
  readonly waiter: Waiter;
  /** When its check was sent, by the clock's milliseconds. */
  readonly askedAt: number;
  /** A granted one is no longer in the queue: Redis keeps its approval for its caller. */
  state: 'asking' | 'queued' | 'granted';
  /** Infinite until it has one. */
  ticket: number;
  /** Redis may have lost the waiter, or approved it in a wake that was lost. */
  isDoubted: boolean;
}

/** A replica's waiters of one key, by their claims. */
export class LocalWaiters {
  readonly #all = new Map<string, LocalWaiter>();
  readonly #queued = new TicketOrder<LocalWaiter>();
  /** Those whose callers have chosen the request ids, by these. */
  readonly #byRequest = new Map<string, Set<LocalWaiter>>();
  readonly #expired = new Set<LocalWaiter>();
  /** How many are queued and doubted. */
  #doubted = 0;
  /** The longest time for which the place of any that was here is kept, or its approval is held. */
  longestHoldMillis = 0;

  get size(): number {
    return this.#all.size;
  }

  get queued(): number {
    return this.#queued.size;
  }

  /** Whether the place of any is kept that is queued. */
  get keepsAny(): boolean {
    for (const { waiter } of this.#queued) if (waiter.request.keepMillis !== undefined) return true;
    return false;
  }

  /** Whether a check of a request is here whose caller has chosen its id. */
  has(requestId: string): boolean {
    return this.#byRequest.has(requestId);
  }

  /** The queued one with the lowest ticket. */
  get first(): LocalWaiter | undefined {
    return this.#queued.first;
  }

  /** Whether any queued one is doubted. */
  get hasDoubted(): boolean {
    return this.#doubted > 0;
  }

  ask(waiter: Waiter, askedAt: number): void {
    const asking: LocalWaiter = {
      waiter,
      askedAt,
      state: 'asking',
      ticket: Infinity,
      isDoubted: false,
    };
    const { claim, claimOrId } = waiter;
    const { requestId, holdMillis = 0, keepMillis = 0 } = waiter.request;
    this.#all.set(claimOrId, asking);
    this.longestHoldMillis = Math.max(
      this.longestHoldMillis,
      holdMillis,
      MOST_ROUNDED_UP * keepMillis,
    );
    if (claim === undefined) return;
    const others = this.#byRequest.get(requestId) ?? new Set();
    this.#byRequest.set(requestId, others.add(asking));
  }

  get(claim: string): LocalWaiter | undefined {
    return this.#all.get(claim);
  }

  /** A copy of all. */
  waiters(): Waiter[] {
    return Array.from(this.#all.values(), ({ waiter }) => waiter);
  }

  /** How many are queued before one. */
  countBefore(claim: string): number {
    const waiter = this.#all.get(claim);
    return waiter?.state === 'queued' ? this.#queued.countBefore(waiter) : 0;
  }

  /** The claims of the queued, in the order of their tickets. */
  queuedClaims(): string[] {
    return Array.from(this.#queued, ({ waiter }) => waiter.claimOrId);
  }

  giveTicket(claim: string, ticket: number): void {
    const waiter = this.#all.get(claim);
    if (waiter?.state !== 'asking') return;
    waiter.ticket = ticket;
    this.#join(waiter);
  }

  /** The approval of a kept place is kept for its caller. */
  grant(claim: string): void {
    const waiter = this.#all.get(claim);
    if (!waiter) return;
    this.#leave(waiter);
    waiter.state = 'granted';
  }

  /** Such an approval may be lost. The next call tells what has become of it. */
  doubtGrant(claim: string): void {
    const waiter = this.#all.get(claim);
    if (waiter?.state !== 'granted' || waiter.ticket === Infinity) return;
    waiter.isDoubted = true;
    this.#join(waiter);
  }

  /** @returns the removed one, if there was one */
  remove(claim: string): LocalWaiter | undefined {
    const removed = this.#all.get(claim);
    if (!removed) return undefined;
    this.#leave(removed);
    this.#all.delete(claim);
    this.#expired.delete(removed);
    const { requestId } = removed.waiter;
    const others = this.#byRequest.get(requestId);
    others?.delete(removed);
    if (others?.size === 0) this.#byRequest.delete(requestId);
    return removed;
  }

  /**
   * Other checks or releases have ended the waits of checks. Their places stay.
   * @returns the claims of the waits on this replica
   */
  endWaits(ended: readonly EndedWait[]): string[] {
    return ended.flatMap(({ claim, why }) => {
      const found = this.#all.get(claim);
      found?.waiter.conflict(why);
      return found ? claim : [];
    });
  }

  /** The longest wait of a request is over. It is doubted if it is queued, since its turn may have come at this moment. */
  expire(claim: string): void {
    const waiter = this.#all.get(claim);
    if (waiter) this.#expired.add(waiter);
    this.doubt(claim);
  }

  /** Those whose longest wait is over, also if their turns have come and their callers are still to be told. */
  get expired(): LocalWaiter[] {
    return [...this.#expired];
  }

  /** Doubts one that is not granted, if it is there. */
  doubt(claim: string): void {
    const waiter = this.#all.get(claim);
    if (!waiter || waiter.state === 'granted' || waiter.isDoubted) return;
    waiter.isDoubted = true;
    if (waiter.state === 'queued') this.#doubted += 1;
  }

  /** Doubts those whose callers have chosen these request ids. Claims of checks are passed over. */
  doubtRequests(requestIds: readonly string[]): void {
    for (const id of requestIds) {
      for (const { waiter } of this.#byRequest.get(id) ?? []) this.doubt(waiter.claimOrId);
    }
  }

  /** Doubts all, also those without a ticket, since their tickets may be older than the doubt. */
  doubtAll(): void {
    for (const waiter of this.#all.values()) waiter.isDoubted = true;
    this.#doubted = this.#queued.size;
  }

  /** Takes the queued ones that are doubted, in the order of their tickets. The next call asks about them. */
  takeDoubted(most: number): Ticket[] {
    const taken: Ticket[] = [];
    if (this.#doubted === 0) return taken;
    for (const waiter of this.#queued) {
      if (!waiter.isDoubted) continue;
      if (taken.length === most) break;
      waiter.isDoubted = false;
      taken.push(waiter);
    }
    this.#doubted -= taken.length;
    return taken;
  }

  #join(waiter: LocalWaiter): void {
    waiter.state = 'queued';
    this.#queued.add(waiter);
    if (waiter.isDoubted) this.#doubted += 1;
  }

  #leave(waiter: LocalWaiter): void {
    if (waiter.state !== 'queued') return;
    this.#queued.remove(waiter);
    if (waiter.isDoubted) this.#doubted -= 1;
  }
}

/** Waiters in the order of their tickets. Several checks of one request may have the same ticket. */
export class TicketOrder<Item extends { readonly ticket: number }> implements Iterable<Item> {
  readonly #inOrder: Item[] = [];

  get size(): number {
    return this.#inOrder.length;
  }

  get first(): Item | undefined {
    return this.#inOrder[0];
  }

  [Symbol.iterator](): Iterator<Item> {
    return this.#inOrder.values();
  }

  /** How many are before one that is here. */
  countBefore(item: Item): number {
    return this.#inOrder.indexOf(item, this.#indexOf(item.ticket));
  }

  /** New tickets come in their order. A request that comes back has the ticket of before. */
  add(item: Item): void {
    const last = this.#inOrder.at(-1);
    if (!last || last.ticket <= item.ticket) this.#inOrder.push(item);
    else this.#inOrder.splice(this.#indexOf(item.ticket), 0, item);
  }

  /** Removes one that is here. */
  remove(item: Item): void {
    this.#inOrder.splice(this.countBefore(item), 1);
  }

  /** The index of the first one whose ticket is not lower. */
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
