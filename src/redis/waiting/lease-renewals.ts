import type { Clock } from '../../common/clock.js';
import { groupBy } from '../../common/group-by.js';
import type { LeasedPlaces } from '../scripts/several-keys.js';
import { ModeTimer } from './mode-timer.js';
import type { WaitingStore } from './waiting-store.js';

/** The most keys of one call. Redis answers other callers between two calls. */
const MAX_KEYS_PER_CALL = 100;
/** The most keys whose calls are under way at a time. */
const MAX_KEYS_AT_A_TIME = 400;
/** Leases that are due within this part of a lease are renewed together, and from then on always together. */
const TOGETHER = 1 / 12;

/** The places here for one key, whose lease is renewed with others. */
export interface LeasedQueue extends LeasedPlaces {
  /** By the clock; infinite while the lease must not be renewed with others. */
  readonly renewalDueAt: number;
  /** A call sent at this time has renewed the lease. */
  leaseRenewed(sentAt: number): void;
  /** The lease was not renewed. A settle has to find out why. */
  leaseDoubted(): void;
}

export interface LeaseRenewalsParts {
  readonly store: Pick<WaitingStore, 'renew'>;
  readonly clock: Clock;
  readonly leaseMillis: number;
  readonly slotOf: (name: string) => number;
}

/**
 * Renews the leases of all queues of this replica, with one timer and many leases in a call. While nothing happens to
 * the waiters, these are the only calls for them.
 */
export class LeaseRenewals {
  readonly #queues = new Set<LeasedQueue>();
  readonly #timer: ModeTimer;
  #dueAt = Infinity;
  #isUnderWay = false;

  constructor(private readonly parts: LeaseRenewalsParts) {
    this.#timer = new ModeTimer(parts.clock);
  }

  /** Renews the queue's lease from now on, whenever it is due. */
  watch(queue: LeasedQueue): void {
    this.#queues.add(queue);
    if (queue.renewalDueAt < this.#dueAt) this.#arm(queue.renewalDueAt);
  }

  unwatch(queue: LeasedQueue): void {
    this.#queues.delete(queue);
    if (this.#queues.size === 0) this.#disarm();
  }

  /** After calls under way, all queues are looked at again. */
  #arm(dueAt: number): void {
    if (this.#isUnderWay || dueAt === Infinity) return;
    this.#dueAt = dueAt;
    this.#timer.arm(dueAt, () => void this.#renewDue());
  }

  #disarm(): void {
    this.#dueAt = Infinity;
    this.#timer.cancel();
  }

  async #renewDue(): Promise<void> {
    this.#disarm();
    this.#isUnderWay = true;
    const { clock, leaseMillis } = this.parts;
    const dueBy = clock.now() + leaseMillis * TOGETHER;
    const due = this.#due(this.#queues, dueBy);
    for (let first = 0; first < due.length; first += MAX_KEYS_AT_A_TIME) {
      const next = due.slice(first, first + MAX_KEYS_AT_A_TIME);
      await this.#renewAll(this.#due(next, dueBy));
    }
    this.#isUnderWay = false;
    let nextDueAt = Infinity;
    for (const queue of this.#queues) nextDueAt = Math.min(nextDueAt, queue.renewalDueAt);
    this.#arm(nextDueAt);
  }

  #due(queues: Iterable<LeasedQueue>, by: number): LeasedQueue[] {
    return [...queues].filter((queue) => queue.renewalDueAt <= by);
  }

  async #renewAll(queues: readonly LeasedQueue[]): Promise<void> {
    const calls: Promise<void>[] = [];
    for (const ofSlot of groupBy(queues, ({ names }) => this.parts.slotOf(names.state))) {
      for (let first = 0; first < ofSlot.length; first += MAX_KEYS_PER_CALL) {
        calls.push(this.#renew(ofSlot.slice(first, first + MAX_KEYS_PER_CALL)));
      }
    }
    await Promise.all(calls);
  }

  async #renew(queues: readonly LeasedQueue[]): Promise<void> {
    const sentAt = this.parts.clock.now();
    const notRenewed = new Set(await this.#ask(queues));
    for (const queue of queues) {
      if (notRenewed.has(queue)) queue.leaseDoubted();
      else queue.leaseRenewed(sentAt);
    }
  }

  /** @returns those whose leases were not renewed, or may not have been */
  async #ask(queues: readonly LeasedQueue[]): Promise<readonly LeasedQueue[]> {
    try {
      return await this.parts.store.renew(queues);
    } catch {
      // The settles that follow find what was wrong, or fail as well. The log and the metrics show both.
      return queues;
    }
  }
}
