import type { CallerPresence } from './caller-presence.js';
import type { Decision, Quota } from './limiter.js';

/**
 * A request that may have to wait for its turn. It is decided once: approved or refused, withdrawn
 * because its caller disconnected, or failed. The first decision holds. A later call learns that it is late.
 */
export class Waiter {
  /** Resolves or rejects when the request is decided. */
  readonly decision: Promise<Decision>;
  #resolve!: (decision: Decision) => void;
  #reject!: (error: unknown) => void;
  #decided = false;
  #caller: CallerPresence | undefined;

  constructor(readonly requestId: string) {
    this.decision = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get decided(): boolean {
    return this.#decided;
  }

  /** @returns false where the request was decided before, so that `decision` has no effect */
  decide(decision: Decision): boolean {
    if (!this.#end()) return false;
    this.#resolve(decision);
    return true;
  }

  /** @returns false where the request was decided before, as with {@link decide} */
  approve(quota?: Quota): boolean {
    return this.decide({ outcome: 'approved', requestId: this.requestId, quota });
  }

  /** The same for a request that had to wait for its turn. */
  approveFromQueue(quota?: Quota): boolean {
    return this.decide({ outcome: 'approved', requestId: this.requestId, waited: true, quota });
  }

  fail(error: unknown): void {
    if (this.#end()) this.#reject(error);
  }

  /** Withdraws an undecided request when its caller disconnects, and calls `onWithdrawn`. */
  withdrawOnDisconnect(caller: CallerPresence | undefined, onWithdrawn: () => void): void {
    if (!caller) return;
    const withdraw = (): void => {
      if (this.decide({ outcome: 'withdrawn' })) onWithdrawn();
    };
    if (caller.isDisconnected) {
      withdraw();
      return;
    }
    caller.onDisconnect = withdraw;
    this.#caller = caller;
  }

  #end(): boolean {
    if (this.#decided) return false;
    this.#decided = true;
    if (this.#caller) this.#caller.onDisconnect = undefined;
    return true;
  }
}
