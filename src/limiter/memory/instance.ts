import type {
  Amendment,
  CheckRequest,
  InstanceDetail,
  InstanceState,
  KeyLimits,
  PlaceInQueue,
  Quota,
  RejectedReport,
  Remaining,
  RemainingReport,
} from '../limiter.js';
import { rejectionOf } from '../rejected-report.js';
import { forEachLimit } from '../limits.js';
import { type AmendOutcome, Approvals, type InstanceBounds, type Terms } from './approvals.js';
import { decideAtOnce } from './decide-at-once.js';
import type { InstanceDecision, InstancePeek, RecordDecision } from './instance-decision.js';
import { type ClaimOutcome, knownOf, type KnownRequests } from './known-requests.js';
import type { Window } from './limits/window.js';
import { type MemoryBudget, UNBOUNDED_BUDGET } from './memory-budget.js';
import { FifoQueue } from './queue/fifo-queue.js';
import { placesIn } from './queue/places.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import { type Overrides, RulesInForce } from './rules-in-force.js';
import { Turns } from './turns.js';

/** More is no estimate that was too low, and would close the key for everybody. */
export const MOST_TIMES_MAXIMUM = 10;

const NOBODY: readonly string[] = [];

/**
 * The state of one key, and every rule of the limiter, without clock, timers or promises. The scripts in
 * `lua/` have the same rules, operation by operation.
 */
export class Instance {
  /** What counts of its limits. */
  readonly approvals: Approvals;
  #queue: WaitingQueue = new FifoQueue();
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
  #known: KnownRequests | undefined;

  /** @param known what the key remembers from before, if it was removed while it was idle */
  constructor(
    readonly key: string,
    now: number,
    policy: { readonly current: KeyLimits },
    bounds: InstanceBounds,
    budget: MemoryBudget,
    /** Gets the ids that were approved from the queue, in order. */
    private readonly onGrant: (requestIds: readonly string[]) => void,
    known?: KnownRequests,
    /** Called when an approval has lapsed that was held for its caller. */
    private readonly onUnclaimed: () => void = () => undefined,
  ) {
    this.#rules = new RulesInForce(policy);
    this.approvals = new Approvals(now, this.#rules.limits, bounds, budget);
    this.#expires = this.#idleAt;
    known?.continueWith(this.approvals, this.#queue);
    this.#known = known;
  }

  /** Those of the own limit. Idle removal and the denials follow them. */
  get #window(): Window {
    return this.approvals.window;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** As of the last operation. */
  get isPaused(): boolean {
    return this.#pausedUntil > -Infinity;
  }

  /** When waiters may have room next, in whole milliseconds, as the times of operations are. */
  get roomAt(): number {
    return Math.ceil(this.exactRoomAt);
  }

  /** The same to the microsecond. */
  get exactRoomAt(): number {
    return this.#turns.exactRoomAt;
  }

  isIdle(now: number): boolean {
    if (now < this.#expires || now < this.#pausedUntil || this.#queue.size > 0) return false;
    return this.approvals.holds?.heldAt(now) === undefined;
  }

  /** Whether it still remembers requests whose callers have chosen their ids. */
  get remembersRequests(): boolean {
    return this.#known?.hasAny ?? false;
  }

  check(now: number, requestId: string, request: CheckRequest): InstanceDecision {
    const granted = this.#beginCheck(now, request);
    const decision = this.#decide(now, requestId, request);
    // After the check is decided, since they are told what is left then.
    if (granted.length > 0) this.onGrant(granted);
    return decision;
  }

  /**
   * Decides a check whose caller has chosen the request id.
   * @param number of the check's claim
   */
  checkKnown(
    now: number,
    requestId: string,
    request: CheckRequest,
    number: number,
  ): InstanceDecision | RecordDecision {
    const granted = this.#beginCheck(now, request);
    const decideNew = (): InstanceDecision => this.#decide(now, requestId, request);
    this.#known ??= knownOf(this.approvals, this.#queue, this.onUnclaimed);
    const decision = this.#known.decide(now, requestId, request, number, decideNew);
    if (granted.length > 0) this.onGrant(granted);
    // It may have left the place of the head.
    if (decision === 'wait_expired') this.#serveQueue(now);
    return decision;
  }

  /** Says what a check would get that does not wait, and when its turn would come. Nothing changes. */
  peek(now: number, terms: Terms): InstancePeek {
    const copy = this.#copy(now);
    copy.#beginCheck(now, {});
    const decision = decideAtOnce(copy.approvals, terms, copy);
    const turnMillis =
      decision === 'approved' ? 0 : copy.#turns.finiteMillisToTurn(now, terms.hits);
    return { decision, quota: copy.quota(now), turnMillis };
  }

  /**
   * Ends what is over, takes the rules and what the request sets, and approves the waiters that have room.
   * @returns their ids, in order
   */
  #beginCheck(now: number, request: Overrides): readonly string[] {
    this.#roll(now);
    if (this.#takeMaxima(now)) this.#rules.dropOverridesAboveCeilings(this.#window);
    // It may be the length that the window has already.
    if (this.#rules.overrideWindow(this.#window, request, this.#isNew)) this.#takeMaxima(now);
    this.#isNew = false;
    this.#expires = this.#idleAt;
    this.#rules.override(request);
    this.approvals.own.maximum = this.#rules.maximum;
    return this.#grant(now);
  }

  #decide(now: number, requestId: string, request: CheckRequest): InstanceDecision {
    const { hits = 1, holdMillis } = request;
    const terms = { hits, holdMillis };
    const decision = decideAtOnce(this.approvals, terms, this);
    if (decision === 'approved') {
      return this.approvals.add(now, requestId, terms) ? 'approved' : 'store_full';
    }
    if (decision === 'too_many_hits') return decision;
    if (!request.canWait) {
      if (decision !== 'key_full') this.#denied += 1;
      return decision;
    }
    const refusal = this.#turns.refusalToWait(now, request);
    if (refusal) return refusal;
    this.#queue.add({ requestId, arrival: now, keepMillis: request.keepMillis, ...terms });
    return 'waiting';
  }

  /** Returns where a request waits, as of the last operation; undefined if it does not. */
  placeOf(now: number, requestId: string): PlaceInQueue | undefined {
    return this.#turns.placeOf(now, requestId);
  }

  /** How long a request has waited that does. */
  waitedMillis(now: number, requestId: string): number {
    return now - (this.#queue.find(requestId)?.arrival ?? now);
  }

  /** The check with this number gets the approval of its request, which was held for it. */
  claim(now: number, requestId: string, number: number): ClaimOutcome {
    this.#roll(now);
    const claimed = this.#known?.claim(now, requestId, number) ?? 'lapsed';
    this.#serveQueue(now);
    return claimed;
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
    this.#roll(now);
    const isReleased =
      this.#known?.release(now, requestId, isUnused, number) ??
      this.approvals.release(now, requestId, isUnused);
    this.#serveQueue(now);
    return isReleased;
  }

  /** @param millis from now on; 0 ends the pause */
  pause(now: number, millis: number): void {
    this.#roll(now);
    this.#isNew = false;
    this.#pausedUntil = millis > 0 ? now + millis : -Infinity;
    this.#serveQueue(now);
  }

  /** Takes what a vendor says remains of a limit, by the rules as they are now. */
  reportRemaining(now: number, report: RemainingReport): Remaining | RejectedReport {
    this.#update(now);
    const index = this.#rules.limits.findIndex(({ name }) => name === report.limit);
    const limit = this.approvals.limits[index];
    if (limit?.report(now, report)) {
      this.#isNew = false;
      this.#expires = this.#idleAt;
    }
    this.#serveQueue(now);
    const remaining = limit ? Math.max(0, limit.maximum - limit.used) : 0;
    return rejectionOf(this.#rules.limits, report) ?? { remaining };
  }

  /** Changes an approval that still counts, and renews its hold. */
  amend(now: number, requestId: string, amendment: Amendment): AmendOutcome {
    this.#roll(now);
    const { maxHits = MOST_TIMES_MAXIMUM * this.approvals.own.maximum } = amendment;
    // Its caller does not know of an approval that was granted, and may not change it.
    const amended = this.#known?.isGranted(requestId)
      ? 'unknown'
      : this.approvals.amend(now, requestId, { ...amendment, maxHits });
    this.#known?.noteRenewal(now, requestId);
    this.#serveQueue(now);
    return amended;
  }

  /**
   * Withdraws a waiter, or an approval that nobody has got.
   * @param number of the claim of its check, if its caller has chosen the request id. Nothing changes if the request
   *   belongs to a later check.
   */
  withdraw(now: number, requestId: string, number?: number): void {
    this.#roll(now);
    const isKnown = this.#known?.release(now, requestId, true, number) !== undefined;
    if (!isKnown && !this.#queue.remove(requestId)) this.approvals.release(now, requestId, true);
    this.#serveQueue(now);
  }

  /** Gives back the memory of what has ended. Nothing else changes. */
  forgetEnded(now: number): void {
    this.approvals.forgetEnded(now);
    this.#known?.forget(now);
  }

  /** Gives back all memory of an instance that is removed, and remembers no requests. */
  clear(): void {
    this.approvals.clear();
  }

  /** Returns what it remembers, for the instance that takes its place. */
  takeKnown(): KnownRequests | undefined {
    const known = this.#known;
    this.#known = undefined;
    return known;
  }

  inspect(now: number): InstanceState {
    const { holds, limits } = this.approvals;
    return {
      key: this.key,
      limits: forEachLimit(limits, (limit) => limit.state(now)),
      maxRequestsInQueue: this.#rules.maxRequestsInQueue,
      held: holds?.heldAt(now)?.hits ?? 0,
      denied: now >= this.#window.end ? 0 : this.#denied,
      waiting: this.#queue.size,
      pausedMillis: Math.max(0, this.#pausedUntil - now),
    };
  }

  examine(now: number, mostQueued: number): InstanceDetail {
    return {
      ...this.inspect(now),
      ...placesIn(this.#queue, now, mostQueued),
      overridden: {
        ...this.#rules.overridden,
        windowMillis: this.#window.hasOverride,
      },
      isRecovering: false,
      names: [],
    };
  }

  /** As of the last operation. */
  quota(now: number): Quota {
    const { limits } = this.approvals;
    return { limits: forEachLimit(limits, (limit) => limit.quota(now, this.#pausedUntil)) };
  }

  /**
   * The least time until a check that joined now would have its turn, if nobody left the queue and nothing was released
   * before. Each that waits needs one hit at least.
   */
  millisToTurn(now: number, hits?: number): number {
    return this.#turns.millisToTurn(now, hits);
  }

  /** A copy of what decides checks, for a peek. It tells nobody of approvals from the queue. */
  #copy(now: number): Instance {
    const { bounds } = this.approvals;
    const { policy } = this.#rules;
    const copy = new Instance(this.key, now, policy, bounds, UNBOUNDED_BUDGET, () => undefined);
    copy.approvals.copyFrom(this.approvals);
    copy.#queue = this.#queue.copy();
    copy.#rules = this.#rules.copy();
    copy.#servedAt = this.#servedAt;
    copy.#pausedUntil = this.#pausedUntil;
    return copy;
  }

  get #turns(): Turns {
    const { approvals } = this;
    return new Turns(approvals, this.#queue, this.#rules, this.#pausedUntil, this.#servedAt);
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
    if (this.#rules.awaitBoundary(this.#window)) return false;
    this.#takeRules(now);
    return true;
  }

  #takeRules(now: number): void {
    // A longer window may end after the key would be removed.
    this.#expires = Math.max(this.#expires, this.#rules.takeLatest(now, this.approvals));
  }

  /** When the key is removed if nobody checks it again: not before the last of its windows ends. */
  get #idleAt(): number {
    let at = this.#window.idleAt;
    for (const { countsUntil } of this.approvals.limits.slice(1)) at = Math.max(at, countsUntil);
    return at;
  }

  /** Ends the holds that have lapsed, and the windows that are over. */
  #roll(now: number): void {
    this.#rules.dropEndedOverride(now, this.#window);
    const hasRolled = this.approvals.roll(now, this.#rules.latestOwn.windowMillis);
    this.#known?.forget(now);
    if (now >= this.#pausedUntil) this.#pausedUntil = -Infinity;
    if (!hasRolled) return;
    if (this.#rules.hasBoundary) this.#takeRules(now);
    this.approvals.own.maximum = this.#rules.maximum;
    this.#denied = 0;
    // A window in which somebody waits counts as one with a check.
    if (this.#queue.size > 0) this.#expires = this.#idleAt;
  }

  /**
   * Every operation that may have made room calls this. So while somebody waits, a limit is full, or the head needs more
   * than is free.
   */
  #serveQueue(now: number): void {
    const granted = this.#grant(now);
    if (granted.length > 0) this.onGrant(granted);
  }

  /** Approves the waiters that have room. Returns their ids, in order. */
  #grant(now: number): readonly string[] {
    if (this.#queue.size === 0 || this.isPaused) return NOBODY;
    this.approvals.beginServing();
    // Without memory for its id the head keeps waiting, as in a full window.
    const granted = this.#queue.takeNext(
      (waiter) =>
        !this.approvals.areFull(waiter) &&
        this.approvals.fitAlone(waiter) &&
        this.approvals.grant(now, waiter.requestId, waiter),
    );
    if (this.#queue.size === 0) this.approvals.endServing();
    if (granted.length === 0) return NOBODY;
    this.#known?.approve(now, granted);
    // The limits that they count in may be newer than the last check.
    this.#expires = Math.max(this.#expires, this.#idleAt);
    this.#servedAt = Math.floor(now);
    return granted;
  }
}
