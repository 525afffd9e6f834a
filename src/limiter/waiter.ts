import type { Clock } from '../common/clock.js';
import type { CallerPresence } from './caller-presence.js';
import { claimOf } from './claims.js';
import { type RequestIdConflict, RequestIdConflictError } from './errors.js';
import type { CheckRequest, Decision, Quota } from './limiter.js';

/**
 * A request that may have to wait for its turn. It is decided once: approved or denied, withdrawn because its caller
 * disconnected, expired, or failed. The first decision counts. Later calls return false.
 */
export class Waiter {
  /** Resolves or rejects when the request is decided. */
  readonly decision: Promise<Decision>;
  #resolve!: (decision: Decision) => void;
  #reject!: (error: unknown) => void;
  #decided = false;
  #caller: CallerPresence | undefined;
  #cancelTimer: (() => void) | undefined;

  readonly hits: number;
  /** Undefined if its approval will not be held. */
  readonly holdMillis: number | undefined;
  /** Undefined unless its check has named one. */
  readonly holder: string | undefined;
  readonly #maxWaitMillis: number | undefined;

  constructor(
    readonly requestId: string,
    {
      hits = 1,
      holdMillis,
      holder,
      maxWaitMillis,
    }: Pick<CheckRequest, 'hits' | 'holdMillis' | 'holder' | 'maxWaitMillis'> = {},
    /** Of its claim, if its caller has chosen the request id. */
    readonly claimNumber?: number,
  ) {
    this.hits = hits;
    this.holdMillis = holdMillis;
    this.holder = holder;
    this.#maxWaitMillis = maxWaitMillis;
    this.decision = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get decided(): boolean {
    return this.#decided;
  }

  /** @returns false if the request was decided before, so that `decision` has no effect */
  decide(decision: Decision): boolean {
    if (!this.#end()) return false;
    this.#resolve(decision);
    return true;
  }

  /** @returns false if the request was decided before, as with {@link decide} */
  approve(quota?: Quota): boolean {
    const { requestId, claim } = this;
    return this.decide({ outcome: 'approved', requestId, claim, quota });
  }

  /** Approves a request that had to wait for its turn. */
  approveFromQueue(quota?: Quota): boolean {
    const { requestId, claim } = this;
    return this.decide({ outcome: 'approved', requestId, claim, waited: true, quota });
  }

  /** Denies a request whose longest wait is over. */
  expire(quota: Quota): boolean {
    return this.decide({ outcome: 'denied', reason: 'wait_expired', quota });
  }

  fail(error: unknown): void {
    if (this.#end()) this.#reject(error);
  }

  /** Another check or a release has ended its wait. */
  conflict(why: RequestIdConflict): void {
    this.fail(new RequestIdConflictError(why));
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

  /** Starts the longest wait. Calls `onExpired` if the request is undecided when it is over. */
  onceExpired(clock: Clock, onExpired: () => void): void {
    if (this.#maxWaitMillis === undefined || this.#decided) return;
    this.#cancelTimer = clock.after(this.#maxWaitMillis, onExpired);
  }

  /** Undefined unless its caller has chosen the request id. */
  get claim(): string | undefined {
    return claimOf(this.requestId, this.claimNumber);
  }

  /** What its limiter calls its place, or its approval. */
  get claimOrId(): string {
    return this.claim ?? this.requestId;
  }

  #end(): boolean {
    if (this.#decided) return false;
    this.#decided = true;
    this.#cancelTimer?.();
    if (this.#caller) this.#caller.onDisconnect = undefined;
    return true;
  }
}
