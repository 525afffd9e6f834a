import type { Clock } from '../../common/clock.js';
import { withEach } from '../../common/steps.js';
import { CallerPresence } from '../request.js';
import { StoreUnavailableError, UnavailableError } from '../errors.js';
import {
  type Amended,
  type Amendment,
  type CheckRequest,
  type Decision,
  type Holding,
  type InstanceDetail,
  type InstanceState,
  isVerdict,
  type Limiter,
  type Peek,
  type PeekRequest,
  type RefundRequest,
  type RejectedAmendment,
  type RejectedReport,
  type ReleaseOptions,
  type Remaining,
  type RemainingReport,
  type RequestStatus,
  type RequestTrace,
  type StoreCondition,
  type StoreLimiter,
} from '../limiter.js';
import { inPlace, RequestPlaces } from '../request-places.js';
import type { OutageLog } from './outage-log.js';
import type { Substitute } from './substitute.js';

/** A request that waits for its turn in the store. */
interface WaitingRequest {
  readonly key: string;
  /** Its disconnect withdraws the place in the store. */
  readonly place: CallerPresence;
}

/**
 * Lets a substitute decide while the store is down, so that the service continues in an outage. When the outage begins,
 * all waiting requests fail over: the substitute decides them, in their order. The store alone decides requests whose
 * places are kept.
 */
export class OutageLimiter implements Limiter {
  /** In order of arrival. */
  readonly #waiting = new Set<WaitingRequest>();
  /**
   * Those of requests under way that can wait. The numbers of store and substitute together would miss a request that
   * fails over, or count it twice.
   */
  readonly #places = new RequestPlaces();
  #isClosing = false;

  /** @param maxWaiters the most requests that may wait at once, in store and substitute together */
  constructor(
    private readonly primary: StoreLimiter,
    private readonly substitute: Substitute,
    private readonly log: OutageLog,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly maxWaiters = Infinity,
  ) {
    primary.onAvailabilityChange(() => {
      this.#failOver();
    });
  }

  get waiting(): number {
    return this.primary.waiting + this.substitute.waiting;
  }

  waitingOf(key: string): number {
    return this.primary.waitingOf(key) + (this.substitute.limiter?.waitingOf(key) ?? 0);
  }

  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (!request.canWait) return this.#check(request, caller);
    if (this.#isClosing) return Promise.reject(new UnavailableError('shutting_down'));
    const place = this.#places.take(this.maxWaiters, request);
    if (!place) return this.#checkOrKeep({ ...request, noPlace: true }, caller);
    return inPlace(place, request, (asked) => this.#checkOrKeep(asked, caller));
  }

  /** A place that is kept is one in the store, so that no substitute decides in an outage. */
  async #checkOrKeep(request: CheckRequest, caller: CallerPresence | undefined): Promise<Decision> {
    if (request.keepMillis === undefined) return this.#check(request, caller);
    const decision = await this.primary.check(request, caller);
    if (isVerdict(decision)) this.log.storeDecided();
    return decision;
  }

  async #check(request: CheckRequest, caller: CallerPresence | undefined): Promise<Decision> {
    const begunAt = request.maxWaitMillis === undefined ? 0 : this.clock.now();
    try {
      const decision = request.canWait
        ? await this.#checkOrWait(request, caller)
        : await this.primary.check(request);
      if (decision) {
        if (decision.outcome !== 'withdrawn') this.log.storeDecided();
        return decision;
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
    }
    if (this.#isClosing) throw new UnavailableError('shutting_down');
    this.log.policyDecides();
    return this.substitute.check(this.#withRestOfWait(request, begunAt), caller);
  }

  async release(key: string, requestId: string, options?: ReleaseOptions): Promise<boolean> {
    return (
      (await this.substitute.release(key, requestId, options)) ||
      this.primary.release(key, requestId, options)
    );
  }

  async amend(
    key: string,
    requestId: string,
    amendment: Amendment,
    trace?: RequestTrace,
  ): Promise<Amended | RejectedAmendment | undefined> {
    return (
      (await this.substitute.amend(key, requestId, amendment)) ??
      this.primary.amend(key, requestId, amendment, trace)
    );
  }

  pause(key: string, millis: number, canShorten?: boolean): Promise<number> {
    return this.#orSubstitute((limiter) => limiter.pause(key, millis, canShorten));
  }

  reportRemaining(key: string, report: RemainingReport): Promise<Remaining | RejectedReport> {
    return this.#orSubstitute((limiter) => limiter.reportRemaining(key, report));
  }

  refund(request: RefundRequest): Promise<number> {
    return this.#orSubstitute((limiter) => limiter.refund(request));
  }

  giveBack(key: string, requestId: string): void {
    void this.substitute.release(key, requestId, { isUnused: true }).then((isReleased) => {
      if (!isReleased) this.primary.giveBack(key, requestId);
    });
  }

  /** A peek is no decision, so the log does not count it. */
  async peek(request: PeekRequest): Promise<Peek> {
    try {
      return await this.primary.peek(request);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      if (this.#isClosing) throw new UnavailableError('shutting_down');
      return this.substitute.peek(request);
    }
  }

  async statusOf(key: string, requestId: string): Promise<RequestStatus | undefined> {
    return (
      (await this.substitute.statusOf(key, requestId)) ?? this.primary.statusOf(key, requestId)
    );
  }

  inspect(key: string): Promise<InstanceState | undefined> {
    return this.#orSubstitute((limiter) => limiter.inspect(key));
  }

  examine(key: string, mostQueued: number): Promise<InstanceDetail | undefined> {
    return this.#orSubstitute((limiter) => limiter.examine(key, mostQueued));
  }

  holdings(key: string): Promise<readonly Holding[]> {
    return this.#orSubstitute((limiter) => limiter.holdings(key));
  }

  async endHold(key: string, handle: string): Promise<boolean> {
    const isEnded = await this.substitute.limiter?.endHold(key, handle);
    return isEnded === true || this.primary.endHold(key, handle);
  }

  async *list(): AsyncIterable<readonly InstanceState[]> {
    let hasBegun = false;
    try {
      for await (const page of this.primary.list()) {
        hasBegun = true;
        yield page;
      }
    } catch (error) {
      if (hasBegun) throw error;
      yield* this.#inSubstitute(error).list();
    }
  }

  limitsChanged(): void {
    this.substitute.limiter?.limitsChanged();
    this.primary.limitsChanged();
  }

  ping(): Promise<StoreCondition> {
    return this.primary.ping();
  }

  handOver(): void {
    this.primary.handOver();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await withEach([this.substitute, this.primary], (limiter) => limiter.close());
  }

  /** @returns nothing if the substitute has to decide */
  async #checkOrWait(
    request: CheckRequest,
    caller: CallerPresence | undefined,
  ): Promise<Decision | undefined> {
    // The place in the store is withdrawn when the caller disconnects, or when the request fails over.
    const place = new CallerPresence();
    const waiting = { key: request.key, place };
    if (caller) {
      caller.onDisconnect = () => {
        place.disconnect();
      };
      if (caller.isDisconnected) place.disconnect();
    }
    this.#waiting.add(waiting);
    try {
      const decision = await this.primary.check(request, place);
      // Only the caller's disconnect and a failover withdraw it.
      const hasFailedOver = decision.outcome === 'withdrawn' && caller?.isDisconnected !== true;
      return hasFailedOver ? undefined : decision;
    } finally {
      this.#waiting.delete(waiting);
      if (caller) caller.onDisconnect = undefined;
    }
  }

  /** Subtracts the time that a request has waited already. */
  #withRestOfWait(request: CheckRequest, begunAt: number): CheckRequest {
    const { maxWaitMillis } = request;
    if (maxWaitMillis === undefined) return request;
    const passed = Math.ceil(this.clock.now() - begunAt);
    return { ...request, maxWaitMillis: Math.max(0, maxWaitMillis - passed) };
  }

  #failOver(): void {
    for (const { key, place } of [...this.#waiting]) {
      if (!this.primary.isAvailable(key)) place.disconnect();
    }
  }

  /** Asks the store, or while it is down the substitute. */
  async #orSubstitute<Result>(ask: (limiter: Limiter) => Promise<Result>): Promise<Result> {
    try {
      return await ask(this.primary);
    } catch (error) {
      return ask(this.#inSubstitute(error));
    }
  }

  #inSubstitute(error: unknown): Limiter {
    const { limiter } = this.substitute;
    if (!limiter || !(error instanceof StoreUnavailableError)) throw error;
    return limiter;
  }
}
