/** How much of its lease a replica lets pass before it renews it; `lua/lib/recovery-hold.lua` relies on it. */
const RENEWAL = 1 / 3;

/**
 * The time for which Redis takes a replica's waiters for alive. It begins when Redis runs a call, which
 * is not before the call was sent: counted from then, it never ends later here than there.
 */
export class Lease {
  #begunAt = 0;

  /** @param millis its length */
  constructor(private readonly millis: number) {}

  /** A call that was sent at this time has renewed it. */
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
