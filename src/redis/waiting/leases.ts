import type { LeasedPlaces } from '../scripts/several-keys.js';
import { BatchedCalls, type CallsParts } from './batched-calls.js';
import { LEASES_UNSETTLED, LEAST_UNSETTLED, RENEWAL } from '../shared/losses.js';
import { ModeTimer } from './queue-mode.js';

/** @param random from 0 to 1 */
export function leasesUnsettled(random: number): number {
  return LEAST_UNSETTLED + random * (LEASES_UNSETTLED - LEAST_UNSETTLED);
}

/**
 * The time for which Redis assumes that a replica's waiters are alive. It begins when Redis runs a call. This
 * replica counts from the moment it sent the call, which is earlier. So the lease never ends later here than in Redis.
 */
export class Lease {
  #begunAt = 0;
  #settledAt = 0;

  /**
   * @param millis its length
   * @param unsettledMillis after this time without a settle another has to follow
   */
  constructor(
    private readonly millis: number,
    private readonly unsettledMillis: number,
  ) {}

  /** A check or a settle, sent at this time, has begun the lease or renewed it. */
  settled(sentAt: number): void {
    this.#extend(sentAt);
    this.#settledAt = sentAt;
  }

  /**
   * A renewal, sent at this time, was answered.
   * @returns whether a settle has to follow: the lease may have lapsed before, or the last settle is long ago
   */
  renewed(sentAt: number, now: number): boolean {
    if (this.mayHaveLapsed(now)) return true;
    this.#extend(sentAt);
    return now >= this.#settledAt + this.unsettledMillis;
  }

  /** When the lease has to be renewed, unless a settle does so before. */
  get renewalDueAt(): number {
    return this.#begunAt + this.millis * RENEWAL;
  }

  /** Whether Redis may assume by now that the replica is dead. */
  mayHaveLapsed(now: number): boolean {
    return now >= this.#begunAt + this.millis;
  }

  #extend(sentAt: number): void {
    this.#begunAt = Math.max(this.#begunAt, sentAt);
  }
}

/** The most keys of one call. */
const MAX_KEYS_PER_CALL = 100;
/** The most keys whose calls are under way at a time. */
const MAX_KEYS_UNDER_WAY = 400;
/** Leases that are due within this part of a lease are renewed together, and from then on always together. */
const TOGETHER = 1 / 12;

/** The places here for one key, whose lease is renewed with others. */
export interface LeasedQueue extends LeasedPlaces {
  /** By the clock; infinite while the lease must not be renewed with others. */
  readonly renewalDueAt: number;
  /** A call sent at this time has renewed the lease. */
  leaseRenewed(sentAt: number): void;
  /** A settle has to follow, as to find out why the lease was not renewed. */
  settleSoon(): void;
}

/**
 * Renews the leases of all queues of this replica, with one timer and many leases in a call. While nothing happens to
 * the waiters, these are the only calls for them.
 */
export class LeaseRenewals {
  readonly #queues = new Set<LeasedQueue>();
  readonly #timer: ModeTimer;
  readonly #calls: BatchedCalls<LeasedQueue>;
  #dueAt = Infinity;
  /** The calls under way renew what is due by then. */
  #dueBy = -Infinity;
  #isUnderWay = false;

  constructor(
    private readonly parts: Pick<CallsParts, 'clock' | 'slotOf' | 'store' | 'leaseMillis'>,
  ) {
    const { clock, slotOf } = parts;
    this.#timer = new ModeTimer(clock);
    this.#calls = new BatchedCalls({
      clock,
      groupOf: ({ names }) => slotOf(names.state),
      mostPerCall: MAX_KEYS_PER_CALL,
      mostUnderWay: MAX_KEYS_UNDER_WAY,
      underWayCounts: 'items',
      isWanted: (queue) => this.#isDue(queue),
      call: (queues) => this.#renew(queues),
    });
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
    this.#dueBy = clock.now() + leaseMillis * TOGETHER;
    this.#calls.add([...this.#queues].filter((queue) => this.#isDue(queue)));
    await this.#calls.idle();
    this.#isUnderWay = false;
    let nextDueAt = Infinity;
    for (const queue of this.#queues) nextDueAt = Math.min(nextDueAt, queue.renewalDueAt);
    this.#arm(nextDueAt);
  }

  #isDue({ renewalDueAt }: LeasedQueue): boolean {
    return renewalDueAt <= this.#dueBy;
  }

  async #renew(queues: readonly LeasedQueue[]): Promise<void> {
    const sentAt = this.parts.clock.now();
    let notRenewed: ReadonlySet<LeasedQueue>;
    try {
      notRenewed = new Set(await this.parts.store.renew(queues));
    } catch {
      // The settles that follow find what was wrong, or fail as well. The log and the metrics show both.
      notRenewed = new Set(queues);
    }
    for (const queue of queues) {
      if (notRenewed.has(queue)) queue.settleSoon();
      else queue.leaseRenewed(sentAt);
    }
  }
}
