import type { QueueList } from '../../queue-order.js';
import type { WaitingList } from './waiting-list.js';
import { nextTicket } from './tickets.js';
import { positionIn } from './position.js';
import type { Joining, Queued, Stopped } from './queued.js';
import type { WaitingQueue } from './waiting-queue.js';

interface Entry {
  readonly waiter: Queued;
  /** Grows with each waiter. */
  readonly number: number;
}

/** The queue of a key with one list: first come, first served. */
export class FifoQueue implements WaitingQueue {
  /** By their ids, in the order of arrival. Undefined until somebody waits, since most keys never have a waiter. */
  #waiters: Map<string, Entry> | undefined;
  /** Whether they are those of the queue of which this is a copy, which has taken none yet. */
  #isShared = false;
  #lastNumber = 0;

  constructor(public lastTicket: number) {}

  get size(): number {
    return this.#waiters?.size ?? 0;
  }

  copy(): FifoQueue {
    const copy = new FifoQueue(this.lastTicket);
    copy.#waiters = this.#waiters;
    copy.#isShared = true;
    return copy;
  }

  join(now: number, joining: Joining): void {
    this.lastTicket = nextTicket(now, this.lastTicket);
    this.#lastNumber += 1;
    const waiter = { ...joining, ticket: this.lastTicket };
    this.#own.set(waiter.requestId, { waiter, number: this.#lastNumber });
  }

  find(requestId: string): Queued | undefined {
    return this.#waiters?.get(requestId)?.waiter;
  }

  replace(waiter: Queued): void {
    const entry = this.#waiters?.get(waiter.requestId);
    if (entry) this.#own.set(waiter.requestId, { ...entry, waiter });
  }

  positionOf(requestId: string): number | undefined {
    const wanted = this.#waiters?.get(requestId);
    return wanted && positionIn(this.#waiters?.values() ?? [], wanted);
  }

  remove(requestId: string): boolean {
    return this.size > 0 && this.#own.delete(requestId);
  }

  takeNext(approve: (waiter: Queued) => Stopped | undefined): string[] {
    const taken: string[] = [];
    for (const [requestId, { waiter }] of this.#waiters ?? []) {
      if (approve(waiter)) break;
      this.#own.delete(requestId);
      taken.push(requestId);
    }
    return taken;
  }

  stoppedHeads(): Queued[] {
    return this.first(1);
  }

  isNext(): boolean {
    return this.size === 0;
  }

  approvedAtOnce(): void {
    // Nobody waits.
  }

  countIn(list: QueueList | undefined): number {
    return list ? 0 : this.size;
  }

  lists(): readonly WaitingList[] {
    return [];
  }

  first(most: number): Queued[] {
    const first: Queued[] = [];
    for (const { waiter } of this.#waiters?.values() ?? []) {
      if (first.length === most) break;
      first.push(waiter);
    }
    return first;
  }

  /** The waiters, to be changed. */
  get #own(): Map<string, Entry> {
    if (this.#isShared || !this.#waiters) this.#waiters = new Map(this.#waiters);
    this.#isShared = false;
    return this.#waiters;
  }
}
