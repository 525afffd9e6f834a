/** The part of its lease after which a replica renews it, at the latest. `lua/lib/recovery-hold.lua` relies on it. */
const RENEWAL = 1 / 3;

/**
 * The time for which Redis takes a replica's waiters for alive. It begins when Redis runs a call. This
 * replica counts from the moment it sent the call, which is earlier: here it never ends later than there.
 */
export class Lease {
  #begunAt = 0;

  /** @param millis its length */
  constructor(private readonly millis: number) {}

  /** A call sent at this time has renewed the lease. */
  renewed(sentAt: number): void {
    this.#begunAt = Math.max(this.#begunAt, sentAt);
  }

  get renewalDueAt(): number {
    return this.#begunAt + this.millis * RENEWAL;
  }

  /** Whether the replica may have been taken for dead by now. */
  mayHaveLapsed(now: number): boolean {
    return now >= this.#begunAt + this.millis;
  }
}
