/** A replica renews its lease when this part of it is over, at the latest. `lua/lib/recovery.lua` relies on it. */
export const RENEWAL = 1 / 3;

/**
 * A key to which nothing happens is settled again within this number of leases, at the latest. `lua/lib/instance.lua`
 * relies on it.
 */
export const LEASES_UNSETTLED = 15;
/** The least number of leases between two such settles. It is drawn, so that not all keys are settled at once. */
const LEAST_UNSETTLED = 10;

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
   * @param lookAgainMillis after this time without a settle another has to follow, to find what renewals don't check
   */
  constructor(
    private readonly millis: number,
    private readonly lookAgainMillis: number,
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
    return now >= this.#settledAt + this.lookAgainMillis;
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
