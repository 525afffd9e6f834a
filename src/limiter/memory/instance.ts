import type {
  Amendment,
  CheckRequest,
  InstanceDetail,
  InstanceState,
  KeyLimits,
  Overrides,
  Peek,
  Quota,
  RejectedReport,
  Remaining,
  RemainingReport,
  RequestStatus,
} from '../limiter.js';
import { UnavailableError } from '../errors.js';
import type { QueueList } from '../queue-order.js';
import {
  decideAtOnce,
  type InstanceDecision,
  quotaOf,
  type RecordDecision,
  rejectionOf,
} from './instance-decision.js';
import { isHeld, type RequestTerms, termsOf } from '../request.js';
import { approvalStatus, detailOf, type ShownKey, stateOf } from './instance-state.js';
import { type AmendOutcome, Approvals } from './approvals.js';
import { type ClaimOutcome, NamedRequests } from './named-requests.js';
import { microsOf } from './limits/window.js';
import { type InstanceBounds, type MemoryBudget, UNBOUNDED_BUDGET } from './memory-budget.js';
import { arrivalOf } from './queue/waiting-list.js';
import { WaitingQueue } from './queue/waiting-queue.js';
import { RulesInForce } from './rules-in-force.js';
import { Turns } from './turns.js';

const NOBODY: readonly string[] = [];

/**
 * The state of one key, and every rule of the limiter, without clock, timers or promises. The scripts in
 * `lua/` have the same rules, operation by operation.
 */
export class Instance {
  /** What counts of its limits. */
  readonly approvals: Approvals;
  #queue: WaitingQueue;
  #denied = 0;
  /** Until the first operation: no window is in progress. */
  #isNew = true;
  #expires: number;
  #rules: RulesInForce;
  /** When a waiter was approved last; undefined if none was, which takes less memory than a number. */
  #servedAt: number | undefined;
  /** When the pause ends; -Infinity if there is none. */
  #pausedUntil = -Infinity;
  /** Undefined until there is a check whose caller has chosen the request id, since most keys have none. */
  #named: NamedRequests | undefined;

  /** @param named what the key remembers from before, if it was removed while it was idle */
  constructor(
    readonly key: string,
    now: number,
    policy: { readonly current: KeyLimits },
    bounds: InstanceBounds,
    budget: MemoryBudget,
    /** Gets the ids that were approved from the queue, in order. */
    private readonly onGrant: (requestIds: readonly string[], key: string) => void,
    named?: NamedRequests,
    /** Called when an approval has lapsed that was kept for its caller. */
    private readonly onUnclaimed: () => void = () => undefined,
  ) {
    this.#rules = new RulesInForce(policy);
    this.#queue = new WaitingQueue(microsOf(now));
    this.approvals = new Approvals(now, this.#rules.limits, bounds, budget, this.#queue);
    this.#expires = this.approvals.idleAt;
    named?.continueWith(this.approvals, this.#queue);
    this.#named = named;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** As of the last operation. */
  get isPaused(): boolean {
    return this.#pausedUntil > -Infinity;
  }

  isIdle(now: number): boolean {
    if (now < this.#expires || now < this.#pausedUntil || this.#queue.size > 0) return false;
    if (now < (this.approvals.groups?.busyUntil ?? now)) return false;
    return this.approvals.holds?.hasAnyAt(now) !== true;
  }

  /** Whether it still remembers requests whose callers have chosen their ids. */
  get remembersRequests(): boolean {
    return this.#named?.hasAny ?? false;
  }

  /** @param number of the check's claim, if its caller has chosen the request id */
  check(
    now: number,
    requestId: string,
    request: CheckRequest,
    number?: number,
  ): InstanceDecision | RecordDecision {
    const granted = this.#beginCheck(now, request);
    const decision =
      number === undefined
        ? this.#decide(now, requestId, request)
        : this.#decideNamed(now, requestId, request, number);
    // After the check is decided, since they are told what is left then.
    if (granted.length > 0) this.onGrant(granted, this.key);
    // It may have left the place of the head.
    if (decision === 'wait_expired') this.#serveQueue(now);
    return decision;
  }

  #decideNamed(
    now: number,
    requestId: string,
    request: CheckRequest,
    number: number,
  ): InstanceDecision | RecordDecision {
    this.#named ??= new NamedRequests(this.approvals, this.#queue, this.onUnclaimed);
    return this.#named.decide(now, requestId, request, number, (terms) =>
      this.#decide(now, requestId, request, terms),
    );
  }

  /**
   * Says what a check would get that does not wait, and when its turn would come. Nothing changes.
   * @throws UnavailableError if the check could not be decided
   */
  peek(now: number, terms: RequestTerms): Peek {
    const copy = this.#copy(now);
    copy.#beginCheck(now, {});
    const decision = decideAtOnce(now, terms, copy.approvals, copy.#queue, copy.isPaused);
    const quota = copy.quota(now, terms.list);
    if (decision === 'approved') return { outcome: decision, quota };
    if (decision === 'key_full') throw new UnavailableError('key_full');
    const reason = decision === 'denied' ? 'limit_reached' : decision;
    const turnMillis = copy.turns.finiteMillisToTurn(now, terms);
    return { outcome: 'denied', reason, quota, turnMillis };
  }

  /** Says what a request is now; undefined if it is unknown or over. Nothing changes. */
  statusOf(now: number, requestId: string): RequestStatus | undefined {
    const copy = this.#copy(now);
    copy.#roll(now);
    const record = this.#named?.recordAt(now, requestId, copy.approvals.counts(now, requestId));
    return record?.state === 'waiting'
      ? copy.#placeOf(now, requestId)
      : approvalStatus(now, requestId, copy.approvals, record);
  }

  /** Its place as it is, and its turn as a settle now would leave it, which this makes. */
  #placeOf(now: number, requestId: string): RequestStatus | undefined {
    const queued = this.#queue.find(requestId);
    const position = this.#queue.positionOf(requestId);
    if (!queued || position === undefined) return undefined;
    this.#update(now);
    const waiting = this.#queue.countIn(queued.list);
    this.#grant(now);
    const before = position - 1 - (waiting - this.#queue.countIn(queued.list));
    const waitMillis = before < 0 ? 0 : this.turns.finiteMillisToTurn(now, queued, before);
    return { status: 'waiting', position, waitMillis, stoppedBy: this.turns.stopOf(queued.list) };
  }

  /**
   * Ends what is over, takes the rules and what the request sets, and approves the waiters that have room.
   * @returns their ids, in order
   */
  #beginCheck(now: number, request: Overrides): readonly string[] {
    this.#roll(now);
    if (this.#takeMaxima(now)) this.#rules.dropOverridesAboveCeilings(this.approvals.window);
    // It may be the length that the window has already.
    if (this.#rules.overrideWindow(this.approvals.window, request, this.#isNew))
      this.#takeMaxima(now);
    this.#isNew = false;
    this.#expires = this.approvals.idleAt;
    this.#rules.override(request);
    this.approvals.own.maximum = this.#rules.maximum;
    return this.#grant(now);
  }

  /** @param terms those of the request, if they are kept already */
  #decide(
    now: number,
    requestId: string,
    request: CheckRequest,
    terms = isHeld(request) ? termsOf(request) : request,
  ): InstanceDecision {
    const decision = decideAtOnce(now, request, this.approvals, this.#queue, this.isPaused);
    if (decision === 'approved') {
      if (!this.approvals.add(now, requestId, terms)) return 'store_full';
      this.#queue.approvedAtOnce(request);
      return 'approved';
    }
    if (decision === 'too_many_hits' || !request.canWait) {
      if (request.takesRest && decision !== 'paused') this.approvals.takeRest(now, request);
      if (decision === 'denied' || decision === 'paused') this.#denied += 1;
      return decision;
    }
    const refusal = this.turns.refusalToWait(now, request);
    if (refusal) return refusal;
    this.#queue.join(now, { ...termsOf(terms), requestId });
    this.approvals.noteStop(request.list);
    return 'waiting';
  }

  /** The list of a request that waits. */
  listOf(requestId: string): QueueList | undefined {
    return this.#queue.find(requestId)?.list;
  }

  /** How long a request has waited that does. */
  waitedMillis(now: number, requestId: string): number {
    const queued = this.#queue.find(requestId);
    return queued ? now - arrivalOf(queued) : 0;
  }

  /** The check with this number gets the approval of its request, which was kept for it. */
  claim(now: number, requestId: string, number: number): ClaimOutcome {
    return this.#change(now, () => this.#named?.claim(now, requestId, number) ?? 'lapsed');
  }

  /** Takes the rules as they are now, and serves the queue. */
  settle(now: number): void {
    this.#update(now);
    this.#serveQueue(now);
  }

  /**
   * Releases an approval with all of its hits. A request that waits, and whose caller has chosen the id, is withdrawn.
   * @param isUnused nobody has got it, so that it counts in no limit
   * @param number of the claim of the check that gives it back. Nothing changes if the request belongs to a later one.
   */
  release(now: number, requestId: string, isUnused = false, number?: number): boolean {
    return this.#change(
      now,
      () =>
        this.#named?.release(now, requestId, isUnused, number) ??
        this.approvals.release(now, requestId, isUnused),
    );
  }

  /** As the operation. @returns undefined if there is no room for one more group */
  pause(now: number, millis: number, canShorten = true, group?: string): number | undefined {
    return this.#change(now, () => {
      this.#isNew = false;
      if (group !== undefined) return this.approvals.pauseGroup(now, group, millis, canShorten);
      const until = millis > 0 ? now + millis : -Infinity;
      if (canShorten || until > this.#pausedUntil) this.#pausedUntil = until;
      return Math.max(0, this.#pausedUntil - now);
    });
  }

  /** Takes what a vendor says remains of a limit, by the rules as they are now. */
  reportRemaining(now: number, report: RemainingReport): Remaining | RejectedReport {
    this.#update(now);
    const limit = this.approvals.limitNamed(report);
    const isFull = limit?.lists && this.approvals.groups?.isFullFor(report.group ?? '');
    if (!isFull && limit?.report(now, report)) {
      this.#isNew = false;
      this.approvals.noteGroupNamed(report.group);
      this.#expires = this.approvals.idleAt;
    }
    this.#serveQueue(now);
    const remaining = limit ? Math.max(0, limit.maximum - limit.used) : 0;
    const reported = isFull ? ({ rejected: 'key_full' } as const) : { remaining };
    return rejectionOf(this.#rules.limits, report) ?? reported;
  }

  /** Gives hits back without the approvals that took them. @returns how many the own limit has given back */
  refund(now: number, hits: number, list: QueueList | undefined): number {
    return this.#change(now, () => this.approvals.refund(now, hits, list));
  }

  /** Changes an approval that still counts, and renews its hold. */
  amend(now: number, requestId: string, amendment: Amendment): AmendOutcome {
    return this.#change(now, () => {
      // Its caller does not know of an unclaimed approval, and may not change it.
      const isUnclaimed = this.#named?.stateOf(requestId) === 'unclaimed';
      const amended = isUnclaimed ? 'unknown' : this.approvals.amend(now, requestId, amendment);
      this.#named?.noteRenewal(now, requestId);
      return amended;
    });
  }

  /**
   * Withdraws a waiter, or an approval that nobody has got.
   * @param number of the claim of its check, if its caller has chosen the request id. Nothing changes if the request
   *   belongs to a later check.
   */
  withdraw(now: number, requestId: string, number?: number): void {
    this.#change(now, () => {
      if (this.#named?.release(now, requestId, true, number) !== undefined) return;
      const waiter = this.#queue.remove(requestId);
      if (waiter) this.approvals.noteStop(waiter.list);
      else this.approvals.release(now, requestId, true);
    });
  }

  /** Gives back the memory of what has ended. Nothing else changes. */
  forgetEnded(now: number): void {
    this.approvals.forgetEnded(now);
    this.#named?.forget(now);
  }

  /** Returns what it remembers, for the instance that takes its place. */
  takeNamed(): NamedRequests | undefined {
    const named = this.#named;
    this.#named = undefined;
    return named;
  }

  inspect(now: number): InstanceState {
    return stateOf(this.#shownAt(now), now);
  }

  examine(now: number, mostQueued: number): InstanceDetail {
    return detailOf(this.#shownAt(now), now, mostQueued);
  }

  /** As of the last operation. @param list whose limits it has */
  quota(now: number, list?: QueueList): Quota {
    return quotaOf(now, this.approvals, this.#pausedUntil, list);
  }

  /** A copy of what decides checks, to look at. It tells nobody of approvals from the queue, and has no records. */
  #copy(now: number): Instance {
    const { bounds } = this.approvals;
    const { policy } = this.#rules;
    const copy = new Instance(this.key, now, policy, bounds, UNBOUNDED_BUDGET, () => undefined);
    copy.approvals.copyFrom(this.approvals);
    copy.#queue = this.#queue.copy();
    copy.approvals.queue = copy.#queue;
    copy.#rules = this.#rules.copy();
    copy.#servedAt = this.#servedAt;
    copy.#pausedUntil = this.#pausedUntil;
    return copy;
  }

  /** What has ended by now does not count. The limits stay those in force, since a look brings no rules. */
  #shownAt(now: number): ShownKey {
    let { approvals } = this;
    let hasRolled = false;
    if (!approvals.isCurrentAt(now)) {
      const { bounds } = approvals;
      approvals = new Approvals(now, this.#rules.limits, bounds, UNBOUNDED_BUDGET, this.#queue);
      approvals.copyFrom(this.approvals, now);
      approvals.begin(now);
      hasRolled = approvals.roll(now, approvals.window.millis);
    }
    const { groups } = approvals;
    // A look brings no rules to the groups.
    const shownGroups = approvals === this.approvals ? groups?.copy(approvals) : groups;
    shownGroups?.begin(now);
    return {
      key: this.key,
      approvals,
      groups: shownGroups,
      rules: this.#rules,
      queue: this.#queue,
      denied: hasRolled ? 0 : this.#denied,
      pausedUntil: this.#pausedUntil,
    };
  }

  /** When those who wait, and a check that joined now, may have their turns. */
  get turns(): Turns {
    return new Turns(this.approvals, this.#queue, this.#rules, this.#pausedUntil, this.#servedAt);
  }

  /** Ends what is over, and takes the rules as they are now. */
  #update(now: number): void {
    this.#roll(now);
    this.#takeMaxima(now);
    this.approvals.own.maximum = this.#rules.maximum;
  }

  /**
   * Other limits come into force with the next window, or at once if its length stays. The caller then sets the maximum: a
   * check only once it has its overrides, since a lower maximum cuts the level of a bucket.
   * @returns whether they are in force
   */
  #takeMaxima(now: number): boolean {
    if (this.#rules.awaitBoundary(this.approvals.window)) return false;
    this.#takeRules(now);
    return true;
  }

  #takeRules(now: number): void {
    // A longer window may end after the key would be removed.
    this.#expires = Math.max(this.#expires, this.#rules.takeLatest(now, this.approvals));
  }

  /** Ends the holds that have lapsed, and the windows that are over. */
  #roll(now: number): void {
    this.#rules.dropEndedOverride(now, this.approvals.window);
    this.approvals.begin(now);
    const hasRolled =
      !this.approvals.isCurrentAt(now) &&
      this.approvals.roll(now, this.#rules.latestOwn.windowMillis);
    this.#named?.forget(now);
    if (this.isPaused && now >= this.#pausedUntil) this.#pausedUntil = -Infinity;
    if (!hasRolled) return;
    if (this.#rules.hasBoundary) this.#takeRules(now);
    this.approvals.own.maximum = this.#rules.maximum;
    this.#denied = 0;
    // A window in which somebody waits counts as one with a check.
    if (this.#queue.size > 0) this.#expires = this.approvals.idleAt;
  }

  /** Makes a change of what is current, and serves the queue with the room that it makes. */
  #change<Result>(now: number, change: () => Result): Result {
    this.#roll(now);
    const result = change();
    this.#serveQueue(now);
    return result;
  }

  /**
   * Every operation that may have made room calls this. So while somebody waits, a limit is full, or the head needs more
   * than is free.
   */
  #serveQueue(now: number): void {
    const granted = this.#grant(now);
    if (granted.length > 0) this.onGrant(granted, this.key);
  }

  /** Approves the waiters that have room. Returns their ids, in order. */
  #grant(now: number): readonly string[] {
    const { approvals } = this;
    if (approvals.groups) this.#queue.mayHaveRoom(approvals.groups.takeChanged());
    if (this.#queue.size === 0 || this.isPaused) return NOBODY;
    approvals.beginServing();
    /** Groups that may be stopped now, or not any more. */
    const tried = new Set<string>();
    if (approvals.fit({ hits: 1 })) {
      // A group that was stopped until now is not idle: its windows go on.
      this.#queue.bringBack(now, (group) => {
        approvals.groups?.limitsOf(group);
        tried.add(group);
      });
    }
    const granted = this.#queue.takeNext(
      (waiter) => {
        if (waiter.list?.kind === 'group') tried.add(waiter.list.name);
        return approvals.addWaiter(now, waiter);
      },
      (waiter) => approvals.stoppedUntil(waiter),
    );
    for (const group of tried) approvals.groups?.noteStop(group);
    if (this.#queue.size === 0) this.approvals.endServing();
    if (granted.length === 0) return NOBODY;
    this.#named?.approveAll(now, granted);
    // The limits that they count in may be newer than the last check.
    this.#expires = Math.max(this.#expires, this.approvals.idleAt);
    this.#servedAt = Math.floor(now);
    return granted;
  }
}
