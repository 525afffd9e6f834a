import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { AMEND_REPLY } from '../../../src/redis/scripts/operations.js';
import { type FurtherLimit, furtherIn } from '../further-limits.js';
import { luaNumber } from '../lua-constants.js';
import { ticketInList } from '../stored-queue.js';
import { checkBoundOfGroups } from './bound-of-groups.js';
import {
  claimedBy,
  type JudgedCall,
  type JudgedWorld,
  verdictsIn,
  withdrawnBy,
} from './judged-call.js';
import { Model } from './model.js';
import { SharesSeen } from './shares-seen.js';
import { countsAt, type Snapshot, type StoredWaiter, Violation } from './snapshot.js';
import { inOrder, kindOf, listIdOf, shareOf } from './stored-lists.js';
import type { StoredGroup } from './stored-groups.js';
import { grantedIn } from './stored-requests.js';

/** While waiters are served, a bucket may have drained below 0 by what drains in this time. */
const CREDIT_MILLIS = luaNumber('limits/token-bucket', 'CREDIT_MICROS') / 1000;
/** Sums of fractions may differ by this. */
const ROUNDED = 1e-6;

/** An approval of a group. Times are by Redis's clock. */
interface Taken {
  readonly hits: number;
  /** The most that it has ever taken. */
  readonly mostHits: number;
  readonly approvedAt: number;
  /** Where an earlier approval of the request may count on, it may not be counted again: when it was approved first. */
  readonly firstAt: number;
  /** When it was approved, the first time included. */
  readonly times: readonly number[];
  /** Since when it counts other than as a held one. */
  readonly countsFrom: number;
  /** The call that approved it. */
  readonly call: number;
  readonly isHeld: boolean;
  /** Or its hold has lapsed. */
  readonly isReleased: boolean;
}

/** A group, over all calls. */
class SeenGroup {
  readonly taken = new Map<string, Taken>();
  /** By the world's time. */
  pausedUntil = -Infinity;
  /** When its limits were last replaced by such as count in another way. */
  changedAt = -Infinity;
  /** The last call before each of them began to count in the way that it does, by its name. */
  readonly changed = new Map<string, number>();

  /** Nothing counts any more but what is held. */
  forgetEnded(): void {
    for (const [id, { isHeld }] of this.taken) if (!isHeld) this.taken.delete(id);
  }

  change(id: string, change: (taken: Taken) => Partial<Taken>): void {
    const taken = this.taken.get(id);
    if (taken) this.taken.set(id, { ...taken, ...change(taken) });
  }
}

/**
 * What groups have got of the limits that each has to itself, by an account of what was approved and given back. It knows nothing
 * of how Redis counts: only when the windows of a group begin is read there, and that they do not begin too early is judged.
 */
export class GroupsSeen {
  /** By the ids of their lists. */
  #groups = new Map<string, SeenGroup>();
  /** Whether Redis has lost nothing of what it counts of groups since the key began. */
  #isWhole = true;
  readonly #shares: SharesSeen;

  constructor(private readonly world: JudgedWorld) {
    this.#shares = new SharesSeen();
  }

  /** What groups have got may count no longer, or in another window. Each may get one maximum more. */
  lost(): void {
    this.#groups = new Map();
    this.#isWhole = false;
  }

  judge(call: JudgedCall): void {
    const { after, beginsKey } = call;
    if (beginsKey || !after.state) {
      this.#groups = new Map();
      this.#isWhole = true;
    }
    this.#noteRules(call);
    this.#lapse(call);
    const before = new Map([...this.#groups].map(([id]) => [id, this.#countedBefore(id, call)]));
    this.#giveBack(call);
    this.#pause(call);
    const isKnown = call.approved.some((id) => this.#isKnown(id, call));
    const approved = this.#approve(call);
    if (!after.state) return;
    for (const id of approved) this.#checkMaxima(id, call);
    for (const id of this.#groups.keys()) {
      if (this.#isWhole) this.#checkWindows(id, call, before.get(id));
      if (this.#isWhole) this.#checkUsed(id, call);
      // It is idle: its windows begin again, and so do limits of other rules.
      if (!after.groups.has(id)) this.#of(id).forgetEnded();
    }
    if (call.isTorn || !call.stored.isConsistent || !after.isConsistent) return;
    this.#shares.judge(call);
    this.#checkStored(call);
    if (this.#isWhole) checkBoundOfGroups(call, this.world.shape.mostGroups);
    // What they seemed to take, they had taken before. The next call serves those who have room then.
    if (!isKnown) this.#checkNobodyIsHeldBack(call);
  }

  /** Whether any limit may still count an earlier approval of a request. */
  #isKnown(id: string, { stored: { requests, limits } }: JudgedCall): boolean {
    const groups = [...this.#groups.values()];
    return [requests, ...limits.values(), ...groups.map(({ taken }) => taken)].some((ids) =>
      ids.has(id),
    );
  }

  #of(id: string): SeenGroup {
    const group = this.#groups.get(id) ?? new SeenGroup();
    this.#groups.set(id, group);
    return group;
  }

  /** A group looks at the limits in force when a call is about it. */
  #noteRules(call: JudgedCall): void {
    const { number, run, stored, after } = call;
    const { now, batches } = run;
    // Of several batches, the first may have gone by the rules before.
    const isMixed = new Set(batches.map(({ rules }) => JSON.stringify(rules))).size > 1;
    const { ofGroups = [], groupsNumber } = after.state ?? {};
    for (const id of new Set([...stored.groups.keys(), ...after.groups.keys()])) {
      const [was, group] = [stored.groups.get(id), after.groups.get(id)];
      // One that is forgotten was looked at.
      const { number: its = groupsNumber, limits } = group ?? {};
      // In between, rules may have been in force of which it knows nothing any more.
      const isSame = was?.number === its && isCurrent(was, stored) && haveSameRules(call);
      const before = isSame ? waysIn(was?.limits ?? '') : [];
      const all = limits === undefined ? ofGroups : furtherIn(limits);
      const replaced = all.filter((limit) => !before.includes(wayOf(limit)));
      if (replaced.length === 0) continue;
      const { changed } = this.#of(id);
      for (const { name } of replaced) changed.set(name, isMixed ? number : number - 1);
      if (was || isMixed) this.#of(id).changedAt = now;
    }
  }

  /** Holds have lapsed before the call does anything. */
  #lapse({ run: { now }, stored }: JudgedCall): void {
    const granted = grantedIn(stored);
    for (const [id, { lapsesAt, listId }] of stored.holds) {
      if (lapsesAt > now) continue;
      // Nobody has got it.
      const group = this.#groups.get(listId);
      if (granted.has(id)) group?.taken.delete(id);
      else group?.change(id, () => ({ isHeld: false, isReleased: true }));
    }
  }

  #giveBack(call: JudgedCall): void {
    const { number, run, reply, stored, after } = call;
    const { script, own, now } = run;
    const [asked = ''] = run.requestIds;
    const isUnused = own[1] === '1';
    const withdrawn = withdrawnBy(call);
    if (script === 'release' && reply === 1 && isUnused) withdrawn.add(asked);
    const isAmended = Number(reply) >= 0 || reply === AMEND_REPLY.ofWindow;
    const claimed = claimedBy(run, stored, after);
    for (const group of this.#groups.values()) {
      for (const id of withdrawn) group.taken.delete(id);
      if (script === 'release' && reply === 1) {
        group.change(asked, () => ({ isHeld: false, isReleased: true }));
      }
      if (script === 'amend' && isAmended && own[1]) {
        const hits = Number(own[1]);
        group.change(asked, ({ mostHits }) => ({ hits, mostHits: Math.max(mostHits, hits) }));
      }
      for (const id of claimed) {
        const isHeld = after.holds.has(id);
        group.change(id, () => (isHeld ? {} : { isHeld, countsFrom: now, call: number }));
      }
    }
  }

  #pause({ run: { script, own }, reply }: JudgedCall): void {
    const [millis, , id] = own;
    if (script !== 'pause' || !id || reply === -1) return;
    this.#of(id).pausedUntil = this.world.now + Number(millis);
  }

  /** @returns the ids of the groups with approvals */
  #approve(call: JudgedCall): Set<string> {
    const { number, run, stored, after, approved } = call;
    const { now } = run;
    const checks = verdictsIn(call);
    const putBack = new Map([...run.waiters.values()].map((waiter) => [waiter.id, waiter]));
    const withdrawn = withdrawnBy(call);
    const groups = new Set<string>();
    for (const id of approved) {
      const waiter = stored.waiting.get(id);
      const isOver = withdrawn.has(id) || (waiter && !countsAt(stored, waiter, now));
      // The first check that got it, or a place; if a check has ended an earlier wait, the first one after that.
      const ofId = checks.filter(([check]) => check.id === id);
      const ended = ofId.findLastIndex(([, verdict]) => verdict === VERDICT.waitExpired);
      const got = ofId.slice(ended + 1).find(([, it]) => Number(it) >= VERDICT.approved);
      const asked = (isOver ? got?.[0] : undefined) ?? waiter ?? putBack.get(id) ?? got?.[0];
      if (!asked || kindOf(asked) !== 'group') continue;
      const listId = listIdOf(asked);
      const group = this.#of(listId);
      const isHeld = after.holds.has(id);
      const hits = after.holds.get(id)?.hits ?? after.requests.get(id) ?? 1;
      const taken = { hits, mostHits: hits, isHeld, isReleased: false };
      const times = [...(group.taken.get(id)?.times ?? []), now];
      const [firstAt = now] = times;
      const since = { firstAt, times, approvedAt: now, countsFrom: now };
      group.taken.set(id, { ...taken, ...since, call: number });
      groups.add(listId);
      if (group.pausedUntil <= this.world.now) continue;
      throw new Violation('a group that is paused gets nothing', `${id} of ${listId}`);
    }
    return groups;
  }

  /** The limits of a group in force, with the maxima of that. */
  #limitsOf(id: string, { after }: Pick<JudgedCall, 'after'>): FurtherLimit[] {
    return limitsOfGroup(id, after.state?.ofGroups);
  }

  /**
   * The approvals that surely count in a limit of a group. Others may as well: what limits that counted in another way have
   * handed over.
   * @param start of its window, if it has fixed windows
   */
  #counted(id: string, limit: FurtherLimit, now: number, start: number): Taken[] {
    const { algorithm, keepsReleased, windowMillis } = limit;
    const isBucket = algorithm?.name === 'token_bucket';
    const isFixed = !algorithm || algorithm.name === 'fixed_window';
    const { taken: all, changed } = this.#of(id);
    const since = changed.get(limit.name) ?? 0;
    const from = isFixed ? start : isBucket ? -Infinity : now - windowMillis + 1;
    return [...all.values()].filter((taken) => {
      if (taken.isHeld && !keepsReleased && !isBucket) return true;
      if (taken.isReleased && !keepsReleased) return false;
      const at = keepsReleased ? taken.approvedAt : taken.countsFrom;
      return taken.call > since && (isFixed ? at : taken.firstAt) >= from;
    });
  }

  /** How much that is at least: of a bucket, the level. */
  #least(id: string, limit: FurtherLimit, now: number, start: number): number {
    return usedBy(this.#counted(id, limit, now, start), limit, now);
  }

  /** (a) No group gets more than its maximum. Where what was given back was forgotten before, it gets as much again. */
  #checkMaxima(id: string, call: JudgedCall): void {
    const { run, stored, after } = call;
    const { now } = run;
    const ofCallers = run.batches.flatMap(({ rules }) => rules.limits.slice(1) as FurtherLimit[]);
    const others = limitsOfGroup(id, [...(stored.state?.ofGroups ?? []), ...ofCallers]);
    for (const limit of this.#limitsOf(id, call)) {
      const start = after.groups.get(id)?.counts[limit.name]?.start ?? now;
      const counted = this.#counted(id, limit, now, start);
      const same = others.filter(({ name }) => name === limit.name);
      const most = Math.max(...[limit, ...same].map((it) => capacityOf(it) + creditOf(it)));
      // One that needs more than a maximum, which was lowered since, gets a window for itself.
      const isAlone = counted.filter(({ hits }) => takenOf(hits, limit) > 0).length < 2;
      const times = this.#isWhole ? 1 : 2;
      if (isAlone || usedBy(counted, limit, now) <= times * most + ROUNDED) continue;
      const detail = `${usedBy(counted, limit, now)} of ${most} by ${limit.name} in ${id}`;
      throw new Violation('no group gets more than its maximum', detail);
    }
  }

  /** What surely counts in the fixed windows of a group as a call finds them, by the names of the limits. */
  #countedBefore(id: string, { run: { now }, stored }: JudgedCall): Map<string, number> {
    const limits = limitsOfGroup(id, stored.state?.ofGroups).filter(isFixedWindow);
    return new Map(
      limits.map((limit) => {
        const start = stored.groups.get(id)?.counts[limit.name]?.start ?? now;
        return [limit.name, this.#least(id, limit, now, start)];
      }),
    );
  }

  /** A window in which anything counts lasts as long as it says. */
  #checkWindows(
    id: string,
    call: JudgedCall,
    before: ReadonlyMap<string, number> = new Map(),
  ): void {
    const { run, stored, after } = call;
    for (const limit of this.#limitsOf(id, call).filter(isFixedWindow)) {
      const { name, windowMillis } = limit;
      const was = stored.groups.get(id)?.counts[name]?.start;
      const is = after.groups.get(id)?.counts[name]?.start;
      const isSame = this.#of(id).changedAt < run.now && is !== undefined;
      if (!isSame || was === undefined || is === was || run.now >= was + windowMillis) continue;
      if ((before.get(name) ?? 0) === 0) continue;
      const detail = `${name} of ${id} from ${was - run.now} to ${is - run.now} ms`;
      throw new Violation('a window of a group lasts as long as it says', detail);
    }
  }

  /** What a group has got counts, and, of fixed windows, nothing else does. */
  #checkUsed(id: string, call: JudgedCall): void {
    const { run, stored, after } = call;
    const { now } = run;
    if (!isCurrent(after.groups.get(id), after)) return;
    for (const limit of this.#limitsOf(id, call)) {
      const { name, algorithm, windowMillis } = limit;
      if (algorithm?.name === 'token_bucket') continue;
      const counts = after.groups.get(id)?.counts[name];
      const was = stored.groups.get(id)?.counts[name]?.start ?? -Infinity;
      const start = counts?.start ?? (now < was + windowMillis ? was : now);
      // The next call that looks at the group moves on to its window.
      if (isFixedWindow(limit) && now >= start + windowMillis) continue;
      const least = this.#least(id, limit, now, start);
      const used = counts?.used ?? 0;
      const isExact = isFixedWindow(limit) && this.#of(id).changedAt < start;
      if (isExact ? used === least : used >= least) continue;
      const detail = `${used}, not ${least}, by ${name} in ${id}`;
      throw new Violation('what a group has got counts in its limits', detail);
    }
  }

  /** Where nothing is lost, each group with anything to itself is to be idle some time, and has a tag of its own while it is stopped. */
  #checkStored({ after }: JudgedCall): void {
    if (!this.#isWhole || this.world.hasLostMemory) return;
    const { groups, idleGroups, lists } = after;
    const [ids, idle] = [groups.keys(), idleGroups].map((all) => [...all].sort().join(' '));
    if (ids !== idle)
      throw new Violation('a group is forgotten when it is idle', `${ids}, not ${idle}`);
    for (const [id, { tag }] of groups) {
      if (tag === undefined || lists.stopped.has(id)) continue;
      throw new Violation('only a group that is stopped is remembered for its tag', id);
    }
  }

  /** (c) A group that is stopped by itself stops nobody else, and not for longer than that. */
  #checkNobodyIsHeldBack(call: JudgedCall): void {
    const { run, after } = call;
    const { state, lists, waiting, groups } = after;
    const isClosed = !state || Math.max(state.recoveryUntil, state.pausedUntil) > run.now;
    const areAllAlive = [...waiting.values()].every((place) => countsAt(after, place, run.now));
    const isJudged = this.#isWhole && haveLimits(after);
    if (isClosed || !isJudged || !areAllAlive || lists.kinds[0] !== 'group') return;
    const firsts = new Map<string, StoredWaiter>();
    for (const [, place] of inOrder(waiting)) {
      const id = listIdOf(place);
      if (kindOf(place) === 'group' && !firsts.has(id)) firsts.set(id, place);
    }
    const tagOf = (id: string, head: StoredWaiter): number =>
      lists.heads.get(id)?.key ??
      Math.max(groups.get(id)?.tag ?? 0, lists.virtualTime + shareOf(head));
    const inTurn = [...firsts].sort(([one, head], [other, otherHead]) => {
      const byTag = tagOf(one, head) - tagOf(other, otherHead);
      return byTag || ticketInList(head) - ticketInList(otherHead);
    });
    for (const [id, { hits }] of inTurn) {
      const hasRoom = this.#hasRoom(id, hits, call);
      // It is stopped already, and stops nobody.
      if (hasRoom === false && lists.stopped.has(id)) continue;
      // One that needs more than the key has stops all.
      if (hasRoom === undefined || !fitsIntoKey(call, hits)) return;
      if (!hasRoom) continue;
      throw new Violation('a group that has room is held back by nobody', `${id} waits`);
    }
  }

  /** Whether a group has room for its head; undefined if that is not sure. */
  #hasRoom(id: string, hits: number, call: JudgedCall): boolean | undefined {
    const group = this.#of(id);
    const { now } = call.run;
    if (group.pausedUntil > this.world.now) return false;
    if (!isCurrent(call.after.groups.get(id), call.after)) return undefined;
    const fits = this.#limitsOf(id, call).map((limit) => {
      const [least, most] = isFixedWindow(limit)
        ? Array.from({ length: 2 }, () => this.#usedOfWindow(id, limit, call))
        : [this.#least(id, limit, now, now), this.#mostUsed(group, limit, now)];
      const [may, does] = [least! - ROUNDED, most! + ROUNDED].map(
        (used) =>
          (limit.maximum > 0 && used <= ROUNDED) ||
          used + takenOf(hits, limit) <= capacityOf(limit) + ROUNDED,
      );
      return does ? true : may ? undefined : false;
    });
    return fits.includes(false) ? false : fits.includes(undefined) ? undefined : true;
  }

  /** As Redis says it, up to the end of the window. */
  #usedOfWindow(id: string, limit: FurtherLimit, { run: { now }, after }: JudgedCall): number {
    const { start = 0, used = 0 } = after.groups.get(id)?.counts[limit.name] ?? {};
    return now < start + limit.windowMillis ? used : this.#least(id, limit, now, now + 1);
  }

  /** What may count of a limit without windows. Steps last up to half of a window, and what is handed over counts as long again. */
  #mostUsed({ changedAt, taken }: SeenGroup, limit: FurtherLimit, now: number): number {
    const { windowMillis, algorithm } = limit;
    if (changedAt > now - 3 * windowMillis) return Infinity;
    const isBucket = algorithm?.name === 'token_bucket';
    const from = now - 2 * windowMillis - 1;
    const may = [...taken.values()].filter(
      ({ isHeld, countsFrom }) => isBucket || isHeld || countsFrom >= from,
    );
    const most = may.map((each) => ({ ...each, hits: each.mostHits }));
    // A bucket that has drained meanwhile takes a request again.
    const all = isBucket
      ? most.flatMap((each) => each.times.map((firstAt) => ({ ...each, firstAt })))
      : most;
    return usedBy(all, limit, now);
  }
}

/** Whether groups have anything to themselves: limits, or pauses. */
export function haveLimits({ state }: Pick<Snapshot, 'state'>): boolean {
  return state !== undefined && state.ofGroups.length + state.groupsUntil > 0;
}

/** Whether a group has looked at its limits since they are in force. */
function isCurrent(group: StoredGroup | undefined, { state }: Pick<Snapshot, 'state'>): boolean {
  if (!group || !state) return true;
  const inForce = state.ofGroups.map(wayOf).join();
  return group.number === state.groupsNumber && waysIn(group.limits).join() === inForce;
}

function haveSameRules({ stored, after }: JudgedCall): boolean {
  const [before, now] = [stored, after].map(({ state }) => state?.ofGroups.map(wayOf).join());
  return before === now;
}

/** Whether the limits of a key that all share have room for the head of its queue. */
function fitsIntoKey({ run: { now }, after }: JudgedCall, hits: number): boolean {
  const { state } = after;
  if (!state) return false;
  const { limits } = Model.restored({ ...after, state }, new Map(), Infinity).instance.approvals;
  return limits.every((limit) => {
    limit.roll(now, limit.millis);
    return limit.fitsAlone(hits);
  });
}

/** A limit but for its maxima, unless these say how fast it drains. */
function wayOf({ maximum, perGroup, ...limit }: FurtherLimit): string {
  const isBucket = limit.algorithm?.name === 'token_bucket';
  const maxima = [maximum, ...(perGroup?.maxima ?? [])];
  return JSON.stringify({ ...limit, ...(isBucket && { maxima }) });
}

/** The same of the limits in a text. */
function waysIn(text: string): string[] {
  return furtherIn(text).map(wayOf);
}

function limitsOfGroup(id: string, limits: readonly FurtherLimit[] = []): FurtherLimit[] {
  const name = decodeURIComponent(id.slice('group:'.length));
  return limits.flatMap(({ perGroup, ...limit }) =>
    perGroup ? [{ ...limit, maximum: perGroup.maxima.get(name) ?? limit.maximum }] : [],
  );
}

function isFixedWindow({ algorithm }: FurtherLimit): boolean {
  return !algorithm || algorithm.name === 'fixed_window';
}

function takenOf(hits: number, { counts }: FurtherLimit): number {
  return counts === 'hits' ? hits : 1;
}

/** How much may count at once. */
function capacityOf({ maximum, algorithm }: FurtherLimit): number {
  return algorithm?.name === 'token_bucket' ? Math.min(maximum, algorithm.burst) : maximum;
}

/** What a bucket may give before it has drained. */
function creditOf({ algorithm, maximum, windowMillis }: FurtherLimit): number {
  return algorithm?.name === 'token_bucket' ? (CREDIT_MILLIS * maximum) / windowMillis : 0;
}

/** What these take of a limit together: of a bucket, the level. */
function usedBy(all: readonly Taken[], limit: FurtherLimit, now: number): number {
  const { algorithm, maximum, windowMillis } = limit;
  if (algorithm?.name !== 'token_bucket') {
    return all.reduce((sum, { hits }) => sum + takenOf(hits, limit), 0);
  }
  let level = 0;
  let last = -Infinity;
  const drain = (time: number): void => {
    level = Math.max(0, level - ((time - last) * maximum) / windowMillis);
    last = time;
  };
  for (const { hits, firstAt } of all.toSorted((a, b) => a.firstAt - b.firstAt)) {
    drain(firstAt);
    // Hits that were corrected upwards raise it no further.
    const highest = maximum === 0 ? Infinity : capacityOf(limit) + maximum;
    level = Math.min(highest, level + takenOf(hits, limit));
  }
  drain(now);
  return level;
}
