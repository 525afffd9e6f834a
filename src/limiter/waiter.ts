import type { Clock } from '../common/clock.js';
import {
  type CallerPresence,
  claimOf,
  type LimitedRequest,
  type RequestTerms,
  termsOf,
} from './request.js';
import { type RequestIdConflict, RequestIdConflictError } from './errors.js';
import type { CheckRequest, Decision, PlaceInQueue, Quota } from './limiter.js';

/** What a check says about its wait. */
type Wait = RequestTerms & Pick<CheckRequest, 'answerMillis' | 'onPlaceEnded'>;

/**
 * A request that may have to wait for its turn. It is decided once: approved or denied, withdrawn because its caller
 * disconnected, expired, or failed. The first decision counts. Later calls return false.
 *
 * With `keepMillis` its place may outlive the decision `waiting`. The limiter that has the place says when it ends.
 */
export class Waiter {
  /** Resolves or rejects when the request is decided. */
  readonly decision: Promise<Decision>;
  #resolve!: (decision: Decision) => void;
  #reject!: (error: unknown) => void;
  #decided = false;
  #hasPlaceEnded = false;
  #caller: CallerPresence | undefined;
  #cancelAnswer: (() => void) | undefined;
  #cancelExpiry: (() => void) | undefined;
  #cancelKeeping: (() => void) | undefined;
  #startKeeping: (() => void) | undefined;

  request: LimitedRequest;
  readonly #answerMillis: number | undefined;
  readonly #onPlaceEnded: (() => void) | undefined;

  /** @param claimNumber the number of its claim, if its caller has chosen the request id */
  constructor(requestId: string, wait: Wait = {}, claimNumber?: number) {
    this.request = { ...termsOf(wait), requestId, owner: claimNumber };
    this.#answerMillis = wait.answerMillis;
    this.#onPlaceEnded = wait.onPlaceEnded;
    this.decision = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get decided(): boolean {
    return this.#decided;
  }

  get requestId(): string {
    return this.request.requestId;
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
    this.onDisconnect(caller, () => {
      if (this.decide({ outcome: 'withdrawn' })) onWithdrawn();
    });
  }

  /** Calls `end` if the caller disconnects before the request is decided. */
  onDisconnect(caller: CallerPresence | undefined, end: () => void): void {
    if (!caller) return;
    if (caller.isDisconnected) {
      end();
      return;
    }
    caller.onDisconnect = end;
    this.#caller = caller;
  }

  /**
   * Ends a check with `keepMillis` whose request waits on. From now on its place is kept for that time.
   * @param place undefined if the caller has disconnected
   * @param onKeptLongEnough called at the end of that time, unless the place has ended before
   * @returns false if the request was decided before, as with {@link decide}
   */
  keep(place: PlaceInQueue | undefined, clock: Clock, onKeptLongEnough: () => void): boolean {
    const { requestId, keepMillis = 0 } = this.request;
    if (!this.decide({ outcome: 'waiting', requestId, place })) return false;
    if (this.#hasPlaceEnded) return true;
    this.#startKeeping = () => {
      this.#cancelKeeping = clock.after(keepMillis, onKeptLongEnough);
    };
    this.#startKeeping();
    return true;
  }

  /** Whether its place is kept for a caller that has been told that it waits, or has disconnected. */
  get isKept(): boolean {
    return this.#startKeeping !== undefined;
  }

  /**
   * The time for which a place is kept begins again, if it has begun: its check has got the place now, perhaps from a check
   * whose caller left later, or no caller could come back.
   */
  keepAgain(): void {
    this.#cancelKeeping?.();
    this.#startKeeping?.();
  }

  /** The place is no longer here. To be called once for each place. */
  endPlace(): void {
    this.#hasPlaceEnded = true;
    this.#cancelExpiry?.();
    this.#cancelKeeping?.();
    this.#onPlaceEnded?.();
  }

  /**
   * Starts the longest wait. Calls `onExpired` when it is over, if the request is undecided then or its place is kept.
   * @param waitedMillis how much of it is over already
   */
  onceExpired(clock: Clock, onExpired: () => void, waitedMillis = 0): void {
    const { maxWaitMillis, keepMillis } = this.request;
    // Neither the request nor its place needs a timer any more.
    const isOver = this.#decided && keepMillis === undefined;
    if (maxWaitMillis === undefined || isOver) return;
    this.#cancelExpiry = clock.after(Math.max(0, maxWaitMillis - waitedMillis), onExpired);
  }

  /** Calls `onDue` when the check has waited for its answer as long as it can, if it is undecided then. */
  onceAnswerDue(clock: Clock, onDue: () => void): void {
    if (this.#answerMillis === undefined || this.#decided) return;
    if (this.#answerMillis === 0) onDue();
    else this.#cancelAnswer = clock.after(this.#answerMillis, onDue);
  }

  /** Undefined unless its caller has chosen the request id. */
  get claim(): string | undefined {
    return claimOf(this.requestId, this.request.owner);
  }

  /** What its limiter calls its place, or its approval. */
  get claimOrId(): string {
    return this.claim ?? this.requestId;
  }

  #end(): boolean {
    if (this.#decided) return false;
    this.#decided = true;
    this.#cancelAnswer?.();
    if (this.request.keepMillis === undefined) this.#cancelExpiry?.();
    if (this.#caller) this.#caller.onDisconnect = undefined;
    return true;
  }
}
