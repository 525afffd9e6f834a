/** The part of its lease after which a replica renews it, at the latest. `lua/lib/recovery-hold.lua` relies on it. */
const RENEWAL = 1 / 3;

/**
 * The time for which Redis takes a replica's waiters for alive. It begins when Redis runs a call. This
 * replica counts from the moment it sent the call, which is earlier: here it never ends later than there.
 */
export class Lease {
  #begunAt = 0;
  #settledAt = 0;

  /**
   * @param millis its length
   * @param lookAgainMillis after this time without a settle another has to follow, which finds what renewals don't look at
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

  /** Whether the replica may have been taken for dead by now. */
  mayHaveLapsed(now: number): boolean {
    return now >= this.#begunAt + this.millis;
  }

  #extend(sentAt: number): void {
    this.#begunAt = Math.max(this.#begunAt, sentAt);
  }
}
