import type { Amended, Amendment, RejectedAmendment, RemainingReport } from '../limiter.js';
import { countsList, type ForEachLimit, forEachLimit, type Limit, type Limits } from '../limits.js';
import type { QueueList } from '../queue-order.js';
import { isHeld, type LimitedRequest, type RequestTerms, termsOf } from '../request.js';
import { Holds, type HeldState, hitsOf } from './holds.js';
import { type CountedLimit, usedOf } from './limits/counted-limit.js';
import { GroupLimits } from './group-limits.js';
import { createLimit, createWindow, takeRules } from './limits/kinds.js';
import { type LaterLimits, Window } from './limits/window.js';
import type { InstanceBounds, MemoryBudget } from './memory-budget.js';
import { type Stopped, stoppedGroup } from './queue/waiting-list.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import { kindOf } from '../kinds/kinds.js';

/** More is no estimate that was too low, and would close the key for everybody. */
export const MOST_TIMES_MAXIMUM = 10;

/** What became of an amendment. */
export type AmendOutcome = Amended | RejectedAmendment | 'unknown' | 'store_full';

/** The approvals of a key that count: in its limits, and as held ones. `lua/lib/approvals.lua` has the same rules. */
export class Approvals {
  limits: ForEachLimit<CountedLimit>;
  /** The window of the key: the windows, or periods, of its own limit. */
  window: Window;
  /** Undefined until there is a hold, since most keys have none. */
  holds: Holds | undefined;
  /** The limits that each group has to itself; undefined if there are none. */
  groups: GroupLimits | undefined;
  /** When an approval was last released or got fewer hits, or a hold lapsed. Undefined if none was, which takes less memory. */
  #releasedAt: number | undefined;

  constructor(
    now: number,
    [own, ...further]: Limits,
    readonly bounds: InstanceBounds,
    /** Holds the ids. */
    readonly budget: MemoryBudget,
    /** Of the key; undefined only in tests of approvals alone. */
    public queue?: WaitingQueue,
  ) {
    this.window = createWindow(now, own);
    this.limits = [createLimit(own, this.window, this, now)];
    this.takeFurther(now, further);
  }

  /**
   * Becomes a copy of others, in which windows and holds may end, and waiters be approved. It is valid until the others
   * change, since its limits find their ids.
   * @param lookedAt if nothing but what is over by then ends in it, and nobody is approved: holds of which none is need no copy
   */
  copyFrom(original: Approvals, lookedAt = Infinity): void {
    const window = original.window.copy();
    this.window = window;
    this.limits = forEachLimit(original.limits, (limit, i) =>
      limit.copy(this, i === 0 ? window : undefined),
    );
    const holds = original.holds;
    this.holds = holds?.areCurrentAt(lookedAt) ? holds : holds?.copy(this);
    this.groups = original.groups?.copy(this);
    this.#releasedAt = original.#releasedAt;
  }

  /** When the key is removed if nobody checks it again: not before the last of its windows ends. */
  get idleAt(): number {
    let at = this.window.idleAt;
    for (let i = 1; i < this.limits.length; i += 1) {
      at = Math.max(at, this.limits[i]?.countsUntil ?? at);
    }
    return Math.max(at, this.groups?.busyUntil ?? at);
  }

  isStopped(group: string): boolean {
    return this.queue?.stoppedHead(group) !== undefined;
  }

  /** The limits that count the checks of a list. */
  limitsOf(list: QueueList | undefined): readonly CountedLimit[] {
    const limits = this.limits;
    if (this.groups && list?.kind === 'group') {
      return [...limits.filter(({ lanes }) => !lanes), ...this.groups.limitsOf(list.name)];
    }
    const countAll = limits.length === 1 || limits.every(({ lanes }) => lanes === undefined);
    return countAll ? limits : limits.filter((limit) => countsList(limit, list));
  }

  /** Whether waiters are let go at an even pace. */
  get havePace(): boolean {
    return this.limits.some(({ hasPace }) => hasPace) || this.groups?.havePace === true;
  }

  /** The limit that is the key's own. */
  get own(): CountedLimit {
    return this.limits[0];
  }

  /**
   * The caller has got an unclaimed approval: from now on it counts as it was asked for. It does not exceed a maximum, since
   * it has counted as a held one.
   * @returns false if there is no memory for it, so that nothing has changed
   */
  claim(now: number, id: string): boolean {
    const request = this.holds?.get(id)?.request ?? {};
    if (isHeld(request)) {
      this.holds?.claim(now, id);
      return true;
    }
    // A limit that keeps the ids of held approvals goes on to count it since it was taken.
    const limits = this.limitsOf(request.list).filter((limit) => !limit.keepsIdOf(true));
    const isTaken = this.#take(id, request, false, limits);
    if (isTaken) this.holds?.release(id);
    // Nobody is served after a check that claims its approval.
    if (this.groups) this.queue?.mayHaveRoom(this.groups.takeChanged());
    return isTaken;
  }

  /** Whether the group of a check is paused. */
  isPaused({ list }: RequestTerms): boolean {
    return list?.kind === 'group' && (this.groups?.pausedUntil(list.name) ?? -Infinity) > -Infinity;
  }

  /** Whether no more approvals with these terms are kept, held or in a window. */
  areFull(terms: RequestTerms): boolean {
    if (isHeld(terms) && this.holds?.isFull) return true;
    const unclaimed = this.holds?.unclaimedNotHeld ?? 0;
    return this.limitsOf(terms.list).some((limit) => limit.hasAllIds(isHeld(terms), unclaimed));
  }

  /** Whether the key has no room for the group of a check, of which nothing counts yet. The queue bounds waiters. */
  isFullForGroup({ list }: RequestTerms): boolean {
    if (list?.kind !== 'group' || !this.groups) return false;
    return this.groups.declared.length > 0 && this.groups.isFullFor(list.name);
  }

  /** @returns until when, from now on; undefined if the key has no room for one more group */
  pauseGroup(now: number, name: string, millis: number, canShorten: boolean): number | undefined {
    this.groups ??= new GroupLimits(now, [], this);
    if (millis > 0 && this.groups.isFullFor(name)) return undefined;
    return this.groups.pause(name, millis, canShorten);
  }

  /** The limit that a report is about; undefined if there is none. */
  limitNamed({ limit: wanted, group }: RemainingReport): CountedLimit | undefined {
    const ofGroup = group === undefined ? [] : (this.groups?.limitsOf(group) ?? []);
    return [...this.limits, ...ofGroup].find(({ name }) => name === wanted);
  }

  /** The queue is served, perhaps later than there was room. */
  beginServing(): void {
    for (const limit of this.limits) limit.beginServing?.();
    this.groups?.beginServing();
  }

  /** Nobody waits any more. */
  endServing(): void {
    for (const limit of this.limits) limit.endServing?.();
    this.groups?.endServing();
  }

  /** Whether one more fits into all limits that count it. */
  fit({ hits = 1, list }: RequestTerms): boolean {
    return this.limitsOf(list).every((limit) => limit.fits(hits));
  }

  /**
   * Returns the waiters that one stops that lacks room: those of each list that a limit counts in which it lacks room.
   * Undefined if it has room. One that needs more than a maximum, which was lowered since, gets a window for itself.
   */
  stoppedBy(terms: RequestTerms): Stopped | undefined {
    if (this.areFull(terms)) return 'all';
    const { hits = 1, list } = terms;
    const lacking = this.limitsOf(list).filter((limit) => !limit.fitsAlone(hits));
    if (lacking.some(({ lists }) => !lists)) return 'all';
    const stopped = lacking.flatMap(({ lists = [] }) => lists);
    if (list && this.isPaused(terms)) return [...stopped, stoppedGroup(list.name)];
    return stopped.length > 0 ? stopped : undefined;
  }

  /** When what stops the group of a waiter alone may have ended by itself: see `GroupLimits.stopOf`. */
  stoppedUntil({ hits = 1, list }: RequestTerms): number {
    return this.groups && list ? this.groups.stopOf(list.name, hits).until : -Infinity;
  }

  /** A check that is denied takes what is left of the fixed windows by hits that lack room for it. */
  takeRest(now: number, { hits = 1, list }: RequestTerms): void {
    const limits = this.limitsOf(list);
    const before = usedOf(limits);
    for (const limit of limits) limit.takeRest?.(now, hits);
    if (usedOf(limits) > before) this.#noteGroup(list);
  }

  /** Others wait in a group, which may be stopped by that. */
  noteStop(list: QueueList | undefined): void {
    if (list?.kind === 'group') this.groups?.noteStop(list.name);
  }

  /** What counts in a group has changed. */
  #noteGroup(list: QueueList | undefined): void {
    if (list?.kind === 'group') this.groups?.noteChange(list.name);
  }

  /** Whether one takes more than the maximum of a limit that counts it. */
  exceed({ hits = 1, list }: RequestTerms): boolean {
    return this.limitsOf(list).some((limit) => limit.isBelow(hits));
  }

  /**
   * @param terms kept if the approval is held
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(now: number, id: string, terms: RequestTerms): boolean {
    return isHeld(terms) ? this.#addHeld(now, id, terms, 'held') : this.#take(id, terms, false);
  }

  /**
   * Approves a waiter if it fits. Without memory for its id it keeps waiting, as in a full window.
   * With `keepMillis` the approval is kept as long until its caller has got it. Otherwise its caller gets it at once.
   * @returns undefined if it is approved, and otherwise the waiters that it stops
   */
  addWaiter(now: number, waiter: LimitedRequest): Stopped | undefined {
    const stopped = this.stoppedBy(waiter);
    if (stopped) return stopped;
    const { requestId, keepMillis } = waiter;
    const terms = termsOf(waiter);
    const isAdded =
      keepMillis === undefined
        ? this.add(now, requestId, terms)
        : this.#addHeld(now, requestId, terms, 'unclaimed');
    return isAdded ? undefined : 'all';
  }

  /**
   * Releases an approval with all of its hits.
   * @param isUnused nobody has got it, so that it counts in no limit
   * @returns whether it counted
   */
  release(now: number, id: string, isUnused: boolean): boolean {
    return this.#change(
      now,
      () => {
        const limits = this.#limitsOfId(id);
        const wasHeld = this.holds?.release(id) ?? false;
        const released = limits.filter((limit) => limit.giveBack(id, isUnused));
        for (const { group } of released) this.noteGroupNamed(group);
        return wasHeld || released.length > 0;
      },
      id,
    );
  }

  /** Gives hits back without the approvals that took them. @returns how many the own limit has given back */
  refund(now: number, hits: number, list: QueueList | undefined): number {
    return this.#change(now, () => {
      let ofOwn = 0;
      for (const limit of this.limitsOf(list)) {
        const refunded = limit.refund(hits);
        if (refunded > 0) this.#noteGroup(list);
        if (limit === this.own) ofOwn = refunded;
      }
      return ofOwn;
    });
  }

  amend(now: number, id: string, amendment: Amendment): AmendOutcome {
    return this.#change(now, () => this.#amend(now, id, amendment), id);
  }

  #amend(now: number, id: string, amendment: Amendment): AmendOutcome {
    const { hits, holdMillis, maxHits = MOST_TIMES_MAXIMUM * this.own.maximum } = amendment;
    const limits = this.#limitsOfId(id);
    // First, since a change is made as a whole or not at all.
    if (hits !== undefined && hits > maxHits) {
      const held = this.holds?.get(id);
      const taken = limits.map((limit) => limit.takenBy(id));
      const before = held ? hitsOf(held.request) : taken.find((of) => of !== undefined);
      if (before === undefined) return 'unknown';
      if (hits > before) return { rejected: 'hits', maxHits: Math.max(maxHits, before) };
    }
    if (hits !== undefined && !limits.every((limit) => limit.reserve(id, hits))) {
      return 'store_full';
    }
    const lapsesIn = this.holds?.renew(now, id, amendment);
    if (lapsesIn === 'too_long') return { rejected: 'hold' };
    const isHeld = lapsesIn !== undefined;
    if (isHeld && hits === undefined) return { holdMillis: lapsesIn };
    if (hits === undefined || (holdMillis !== undefined && !isHeld)) return 'unknown';
    const amended = limits.filter((limit) => limit.amend(id, hits));
    for (const { group } of amended) this.noteGroupNamed(group);
    if (isHeld) return { holdMillis: lapsesIn };
    return amended.length > 0 ? {} : 'unknown';
  }

  /** The least time until a check would have its turn in all limits that count it, as `CountedLimit.millisToTurn` says. */
  millisToTurn(
    now: number,
    before: number,
    { hits = 1, list }: RequestTerms,
    later: LaterLimits,
  ): number {
    const turns = this.limitsOf(list).map((limit) => {
      const isOwn = limit === this.own;
      const [millis, maximum] = isOwn ? [later.millis, later.maximum] : [limit.millis];
      const turn = limit.millisToTurn(now, before, hits, millis, maximum);
      const stays = isOwn ? later.keepsOwn : later.keepsFurther;
      return stays ? turn : Math.min(turn, later.at - now);
    });
    return Math.max(...turns);
  }

  /** Whether an approval counts, as of the last operation. */
  counts(now: number, id: string): boolean {
    const lapse = this.holds?.get(id)?.lapsesAt ?? -Infinity;
    return lapse > now || this.#limitsOfId(id).some((limit) => limit.takenBy(id) !== undefined);
  }

  /**
   * Whether a release can be expected: an approval is held now, or something was given back in the current window of a
   * limit or in the one before.
   */
  get expectRelease(): boolean {
    const isHeld = this.holds !== undefined && this.holds.firstLapse < Infinity;
    const releasedAt = this.#releasedAt ?? -Infinity;
    return isHeld || this.limits.some(({ start, millis }) => releasedAt >= start - millis);
  }

  /** An operation begins. */
  begin(now: number): void {
    this.groups?.begin(now);
  }

  /** Whether to roll to now would change nothing, as far as can be told at once. */
  isCurrentAt(now: number): boolean {
    return (
      this.holds?.areCurrentAt(now) !== false &&
      this.limits.every((limit) => limit.isCurrentAt(now))
    );
  }

  /**
   * Ends the holds that have lapsed, and the windows that are over.
   * @param ofRules the length of the own limit's windows by the rules
   * @returns whether the window of the own limit was over
   */
  roll(now: number, ofRules: number): boolean {
    // A lapse may be noticed late.
    this.#releasedAt = this.holds?.endLapsed(now) ?? this.#releasedAt;
    for (let i = 1; i < this.limits.length; i += 1) {
      const limit = this.limits[i];
      limit?.roll(now, limit.millis);
    }
    const hasRolled = this.own.roll(now, ofRules);
    const unclaimed = this.holds?.takeLapsedUnclaimed();
    // Nobody has got these approvals, so that they count in no limit any more.
    for (const id of unclaimed ?? []) {
      for (const limit of this.#limitsOfId(id)) limit.giveBack(id, true);
      this.noteGroupNamed(this.#groupOf(id));
    }
    if (unclaimed) for (const limit of this.limits) limit.noteGivenBack?.();
    this.groups?.beginIdle();
    return hasRolled;
  }

  /**
   * Takes the own limit of other rules: another kind, another calendar, or another length of what is no fixed window. What counts now goes on
   * to count, as a sum without ids if the kind or its steps are others.
   * @returns until when that may count; -Infinity for nothing
   */
  takeOwn(now: number, rule: Limit): number {
    const [before, ...further] = this.limits;
    if (before.continuesAs(rule)) {
      before.change(now, rule);
      return countsUntil([before]);
    }
    const isWindow = kindOf(rule.algorithm).hasBoundary;
    if (isWindow) this.window = createWindow(now, rule);
    else {
      // Its periods go on from the start of the current window.
      this.window = new Window(this.window.start, rule.windowMillis);
      this.window.rollTo(now, rule.windowMillis);
    }
    const own = createLimit(rule, this.window, this, now);
    own.carry(before.sum);
    before.clear();
    this.limits = [own, ...further];
    return countsUntil([own]);
  }

  /**
   * Takes the further limits of other rules. A limit that there was before keeps what was approved in its window.
   * @returns until when anything of them may count; -Infinity for nothing
   */
  takeFurther(now: number, rules: readonly Limit[]): number {
    const [own, ...before] = this.limits;
    const shared = rules.filter(({ perGroup }) => !perGroup);
    const further = takeRules(before, shared, this, now);
    this.limits = [own, ...further];
    this.#takeRulesOfGroups(
      now,
      rules.filter(({ perGroup }) => perGroup),
    );
    return countsUntil(further);
  }

  /** Gives back the memory of windows that are over. Nothing else changes. */
  forgetEnded(now: number): void {
    for (const limit of this.limits) limit.forgetEnded(now);
  }

  /** Gives back all memory. */
  clear(): void {
    this.groups?.clear();
    this.groups = undefined;
    this.holds?.clear();
    for (const limit of this.limits) limit.clear();
  }

  /** @returns false if there is no memory for it, so that nothing has changed */
  #take(
    id: string,
    { hits = 1, list }: RequestTerms,
    held: boolean,
    limits = this.limitsOf(list),
  ): boolean {
    if (this.groups && list?.kind === 'group' && !this.groups.remember(id, list.name)) return false;
    const lacking = limits.findIndex((limit) => !limit.take(id, hits, held));
    if (lacking > 0) for (const taken of limits.slice(0, lacking)) taken.giveBack(id, true);
    if (this.groups) this.#noteGroup(list);
    return lacking === -1;
  }

  #addHeld(now: number, id: string, terms: RequestTerms, state: HeldState): boolean {
    if (!this.#take(id, terms, true)) return false;
    this.holds ??= new Holds(this.bounds.maxHoldsPerKey, this.budget, this);
    if (this.holds.add(now, id, terms, state)) return true;
    for (const limit of this.limitsOf(terms.list)) limit.giveBack(id, true);
    return false;
  }

  /** The limits in which an approval may count. */
  #limitsOfId(id: string): readonly CountedLimit[] {
    const group = this.#groupOf(id);
    if (!this.groups || group === undefined) return this.limits;
    return [...this.limits, ...this.groups.limitsOf(group)];
  }

  #groupOf(id: string): string | undefined {
    if (!this.groups) return undefined;
    const list = this.holds?.get(id)?.request.list;
    return list?.kind === 'group' ? list.name : this.groups.groupOf(id);
  }

  noteHeld(group: string, hasChanged: boolean): void {
    // Whether it was idle is decided before it changes.
    if (hasChanged) this.groups?.noteChange(group);
    else this.groups?.limitsOf(group);
  }

  noteGroupNamed(name: string | undefined): void {
    if (name !== undefined) this.groups?.noteChange(name);
  }

  #takeRulesOfGroups(now: number, rules: readonly Limit[]): void {
    const hadSome = (this.groups?.declared.length ?? 0) > 0;
    if (this.groups) this.groups.takeRules(rules);
    else if (rules.length > 0) this.groups = new GroupLimits(now, rules, this);
    if (hadSome || rules.length === 0) return;
    // They have held something before the limits came.
    for (const name of this.holds?.groups ?? []) this.noteGroupNamed(name);
  }

  /** Changes the approvals, and notes when they take less than before. @param id of the only one that changes */
  #change<Result>(now: number, change: () => Result, id?: string): Result {
    const limits = id === undefined ? this.limits : this.#limitsOfId(id);
    const before = usedOf(limits);
    const result = change();
    for (const limit of limits) limit.noteGivenBack?.();
    if (usedOf(limits) < before) this.#releasedAt = now;
    return result;
  }
}

/** Until when anything may count that was approved by now; -Infinity for nothing. */
function countsUntil(limits: readonly CountedLimit[]): number {
  return Math.max(...limits.filter(({ used }) => used > 0).map((limit) => limit.countsUntil));
}
