import { newUuid } from '../../common/uuid.js';

import type { Clock } from '../../common/clock.js';
import { withEach } from '../../common/steps.js';
import { CallerPresence } from '../request.js';
import { StoreUnavailableError, UnavailableError } from '../errors.js';
import {
  type Answer,
  type Asked,
  type CheckRequest,
  type Decision,
  type InstanceState,
  isVerdict,
  type Limiter,
  type OperationName,
  type StoreCondition,
  type StoreLimiter,
} from '../limiter.js';
import { withinBudget, WaitingBudget } from '../waiting-budget.js';
import type { OutageLog } from './outage-log.js';

/**
 * Which is asked first, the substitute or the store. The substitute alone knows what it approved: if it answers false or undefined, the
 * store is asked. The substitute also answers for the store while that is down.
 */
const ASKED_FIRST: Readonly<Record<OperationName, 'store' | 'substitute'>> = {
  release: 'substitute',
  giveBack: 'substitute',
  amend: 'substitute',
  statusOf: 'substitute',
  endHold: 'substitute',
  pause: 'store',
  reportRemaining: 'store',
  refund: 'store',
  peek: 'store',
  inspect: 'store',
  examine: 'store',
  holdings: 'store',
};

/**
 * Lets a substitute decide while the store is down, so that the service continues in an outage. When the outage begins,
 * all waiting requests fail over: the substitute decides them, in their order. The store alone decides requests whose
 * places are kept.
 */
export class OutageLimiter implements Limiter {
  /**
   * The keys of the requests that wait for their turns in the store, in order of arrival. The disconnect of a presence withdraws
   * the place there.
   */
  readonly #waiting = new Map<CallerPresence, string>();
  /**
   * Those of requests under way that can wait. The numbers of store and substitute together would miss a request that
   * fails over, or count it twice.
   */
  readonly #places = new WaitingBudget();
  #isClosing = false;

  /**
   * @param substitute applies every limit in full to what it gets in the outage, in this replica alone, and knows nothing of
   *   what the store has. Undefined: whatever is asked for is approved then, and nothing is kept
   * @param maxWaiters the most requests that may wait at once, in store and substitute together
   */
  constructor(
    private readonly primary: StoreLimiter,
    private readonly substitute: Limiter | undefined,
    private readonly log: OutageLog,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly maxWaiters = Infinity,
  ) {
    primary.onAvailabilityChange(() => {
      this.#failOver();
    });
  }

  waiting(key?: string): number {
    return this.primary.waiting(key) + (this.substitute?.waiting(key) ?? 0);
  }

  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (!request.canWait) return this.#check(request, caller);
    if (this.#isClosing) return Promise.reject(new UnavailableError('shutting_down'));
    const place = this.#places.take(this.maxWaiters, request);
    if (!place) return this.#checkOrKeep({ ...request, noPlace: true }, caller);
    return withinBudget(place, request, (asked) => this.#checkOrKeep(asked, caller));
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
    return this.#checkInSubstitute(this.#withRestOfWait(request, begunAt), caller);
  }

  async ask<Name extends OperationName>(
    operation: Name,
    asked: Asked<Name>,
  ): Promise<Answer<Name>> {
    if (ASKED_FIRST[operation] === 'substitute') {
      const answer = await this.substitute?.ask(operation, asked);
      return answer === undefined || answer === false ? this.primary.ask(operation, asked) : answer;
    }
    try {
      return await this.primary.ask(operation, asked);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      if (this.#isClosing) throw new UnavailableError('shutting_down');
      const isPeek = operation === 'peek';
      if (!this.substitute) {
        if (!isPeek) throw error;
        return { outcome: 'approved', outagePolicy: 'allow' } as Answer<Name>;
      }
      const answer = await this.substitute.ask(operation, asked);
      return isPeek
        ? ({ ...(answer as Answer<'peek'>), outagePolicy: 'local' } as Answer<Name>)
        : answer;
    }
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
      if (!this.substitute || !(error instanceof StoreUnavailableError)) throw error;
      yield* this.substitute.list();
    }
  }

  limitsChanged(): void {
    this.substitute?.limitsChanged();
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
    const limiters = this.substitute ? [this.substitute, this.primary] : [this.primary];
    await withEach(limiters, (limiter) => limiter.close());
  }

  /** @returns nothing if the substitute has to decide */
  async #checkOrWait(
    request: CheckRequest,
    caller: CallerPresence | undefined,
  ): Promise<Decision | undefined> {
    // The place in the store is withdrawn when the caller disconnects, or when the request fails over.
    const place = new CallerPresence();
    if (caller) {
      caller.onDisconnect = () => {
        place.disconnect();
      };
      if (caller.isDisconnected) place.disconnect();
    }
    this.#waiting.set(place, request.key);
    try {
      const decision = await this.primary.check(request, place);
      // Only the caller's disconnect and a failover withdraw it.
      const hasFailedOver = decision.outcome === 'withdrawn' && caller?.isDisconnected !== true;
      return hasFailedOver ? undefined : decision;
    } finally {
      this.#waiting.delete(place);
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
    for (const [place, key] of [...this.#waiting]) {
      if (!this.primary.isAvailable(key)) place.disconnect();
    }
  }

  async #checkInSubstitute(
    request: CheckRequest,
    caller: CallerPresence | undefined,
  ): Promise<Decision> {
    if (!this.substitute) {
      const { requestId = newUuid() } = request;
      return { outcome: 'approved', requestId, outagePolicy: 'allow' };
    }
    const decision = await this.substitute.check(request, caller);
    return isVerdict(decision) ? { ...decision, outagePolicy: 'local' } : decision;
  }
}
