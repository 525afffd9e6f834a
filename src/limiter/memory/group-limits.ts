import { kindOf } from '../kinds/kinds.js';
import type { GroupState, QueueListState } from '../queue-order.js';
import { areSame, type Limit, limitOfGroup } from '../limits.js';
import { Heap, type HeapItem } from './heap.js';
import { type CountedLimit, type KeyOfLimit, usedOf } from './limits/counted-limit.js';
import { takeRules } from './limits/kinds.js';

/** What a group takes with its limits, measured. */
const BYTES_PER_GROUP = 1500;
/** What the group of an id takes. */
const BYTES_PER_ID = 200;
/** This many ids are looked at for each that comes, so that those that count no longer do not pile up. */
const IDS_LOOKED_AT = 2;
/** Each operation forgets this many idle groups. */
const MOST_FORGOTTEN = 10;

interface Group extends HeapItem {
  readonly name: string;
  /** Those of the rules with which they were made, in their order. */
  limits: readonly CountedLimit[];
  rules: readonly Limit[];
  /** The operation that has looked at it last. */
  operation: number;
  /** When its pause ends; -Infinity without one. */
  pausedUntil: number;
  /** When it may be idle, unless it changes before. */
  idleAt: number;
  /** Whether it is stopped, as far as `idleAt` tells. */
  isStopped: boolean;
  /** Whether the budget has given its memory. */
  isPaid: boolean;
  /**
   * What it took and held as the operation began to look at it. An operation that changes nothing of it leaves `idleAt`, so that
   * whether anybody has looked changes nothing.
   */
  before: Taken;
  /** Whether the operation has changed what counts. */
  hasChanged: boolean;
  /** Whether `idleAt` is of the operation. */
  hasMoved: boolean;
  /** Whether it may have more room than then, for another reason. */
  hasRoom: boolean;
}

interface Taken {
  readonly used: number;
  readonly held: number;
  readonly holds: number;
  readonly pausedUntil: number;
}

const NOTHING: Taken = { used: 0, held: 0, holds: 0, pausedUntil: -Infinity };

/** What the limits of groups have to know of their key. */
export interface KeyOfGroups extends KeyOfLimit {
  /** Whether its own limits or a pause stop the waiters of a group. */
  readonly isStopped: (group: string) => boolean;
}

/**
 * The limits of a key that each group has to itself. A group is idle if nothing counts in its limits or is held, and it is neither
 * paused nor stopped: then it is forgotten, and its windows begin again with its next check. `lua/limits/group-limits.lua` has
 * the same rules. Times are milliseconds of a clock.
 */
export class GroupLimits {
  readonly #groups = new Map<string, Group>();
  readonly #order = new Heap<Group>((one, other) => one.idleAt < other.idleAt);
  /** The groups of approvals, by their ids. */
  readonly #groupOf = new Map<string, string>();
  /** Those at which the operation has looked. */
  #current: Group[] = [];
  #operation = 0;
  #isServing = false;
  /** Whether all groups may have more room. */
  #haveAllRoom = false;
  /** Of which this is a copy. */
  #original: GroupLimits | undefined;
  /** `busyUntil`, as of the operation before. */
  #wasBusyUntil = -Infinity;

  constructor(
    private now: number,
    private rules: readonly Limit[],
    private readonly key: KeyOfGroups,
  ) {}

  /** Returns a copy in which windows may end and waiters be approved. It is valid until this changes. */
  copy(key: KeyOfGroups): GroupLimits {
    const copy = new GroupLimits(this.now, this.rules, key);
    copy.#original = this;
    copy.#wasBusyUntil = this.busyUntil;
    return copy;
  }

  /**
   * Until when anything counts that was approved so far, or pauses a group. What an operation itself has ended again does not count,
   * as in a group that it leaves idle.
   */
  get busyUntil(): number {
    return this.#current
      .filter((group) => group.hasMoved && !this.#isIdle(group))
      .reduce((until, group) => Math.max(until, this.#countsUntil(group)), this.#wasBusyUntil);
  }

  /** An operation begins. */
  begin(now: number): void {
    this.#wasBusyUntil = this.busyUntil;
    this.now = now;
    this.#operation += 1;
    this.#current = [];
    this.#isServing = false;
    // What a copy forgot would come from the original again.
    if (this.#original) return;
    for (let i = 0; i < MOST_FORGOTTEN && this.#forgetFirst(); i += 1);
  }

  /** Other rules are in force. */
  takeRules(rules: readonly Limit[]): void {
    if (areSame(rules, this.rules)) return;
    // Where the key had no such limits, or has none any more, nothing goes on to count. All groups may be idle.
    if (rules.length === 0 || this.rules.length === 0) {
      for (const group of this.#groups.values()) {
        group.limits = [];
        this.#moveTo(group, this.now);
      }
    }
    this.rules = rules;
    for (const group of this.#current) this.#takeRules(group);
    this.#haveAllRoom = true;
  }

  /** The limits of a group, as of the operation. */
  limitsOf(name: string): readonly CountedLimit[] {
    return this.#at(name).limits;
  }

  /** The quotas of a group's limits. @param keyPausedUntil when the pause of the key ends; -Infinity without one */
  quotaOf(now: number, name: string, keyPausedUntil: number) {
    const { limits, pausedUntil } = this.#at(name);
    const until = Math.max(keyPausedUntil, pausedUntil);
    return {
      limits: limits.map((limit) => limit.quota(now, until)),
      groupPausedMillis: pausedUntil > -Infinity ? pausedUntil - now : undefined,
    };
  }

  /** Whether waiters are let go at an even pace. */
  get havePace(): boolean {
    return this.rules.some(({ algorithm }) => kindOf(algorithm).hasPace);
  }

  /** The limits by the rules. */
  get declared(): readonly Limit[] {
    return this.rules;
  }

  /** The groups that have most of their limits, at most this number. */
  fullest(most: number): GroupState[] {
    const groups = this.#names.map((name) => this.#at(name));
    const fullness = ({ limits }: Group): number =>
      Math.max(...limits.map(({ used, capacity }) => used / Math.max(1, capacity)));
    return groups
      .filter((group) => group.limits.length > 0 && !this.#isIdle(group))
      .map((group) => ({ group, fullness: fullness(group), id: encodeURIComponent(group.name) }))
      .sort((a, b) => b.fullness - a.fullness || (a.id < b.id ? -1 : 1))
      .slice(0, most)
      .map(({ group: { name, limits } }) => ({ name, used: limits.map(({ used }) => used) }));
  }

  /**
   * What stops the head of a group alone: `paused`, or the limit that has room last; undefined if nothing does. Until when: infinite
   * if only a release, a lapse or a correction can end it, which tell by themselves.
   */
  stopOf(name: string, hits: number): { stoppedBy: string | undefined; until: number } {
    const { limits, pausedUntil } = this.#at(name);
    let stoppedBy = pausedUntil > -Infinity ? 'paused' : undefined;
    let until = pausedUntil;
    for (const limit of limits) {
      if (limit.fitsAlone(hits)) continue;
      const roomAt = limit.isFullOfHeld ? Infinity : limit.roomAt(hits);
      if (roomAt < until) continue;
      stoppedBy = limit.name;
      until = roomAt;
    }
    return { stoppedBy, until };
  }

  /** The same as it is shown. */
  reasonOfStop(
    name: string,
    hits: number,
  ): Pick<QueueListState, 'stoppedBy' | 'stoppedMillis'> | undefined {
    const { stoppedBy, until } = this.stopOf(name, hits);
    if (stoppedBy === undefined) return undefined;
    const millis = Math.max(0, until - this.now);
    return { stoppedBy, ...(millis < Infinity && { stoppedMillis: millis }) };
  }

  /** The group of an approval; undefined if it is of none, or does not count. */
  groupOf(id: string): string | undefined {
    return this.#groupOf.get(id) ?? this.#original?.groupOf(id);
  }

  /** When the pause of a group ends; -Infinity if it is not paused. */
  pausedUntil(name: string): number {
    return this.#at(name).pausedUntil;
  }

  /** As the operation. */
  pause(name: string, millis: number, canShorten: boolean): number {
    const group = this.#at(name);
    const until = millis > 0 ? this.now + millis : -Infinity;
    if (canShorten || until > group.pausedUntil) {
      group.hasRoom ||= until < group.pausedUntil;
      group.pausedUntil = until;
    }
    this.#noteIdleAt(group);
    return Math.max(0, group.pausedUntil - this.now);
  }

  /** Whether there is no room for one more group. */
  isFullFor(name: string): boolean {
    const group = this.#at(name);
    if (this.#isKept(group)) return false;
    const { maxGroupsPerKey } = this.key.bounds;
    const original = this.#original;
    if (original) {
      // All are looked at only where that may matter.
      const mayBeFull = original.#groups.size + this.#groups.size >= maxGroupsPerKey;
      return mayBeFull && this.#countKept(original) >= maxGroupsPerKey;
    }
    this.#moveTo(group, Infinity);
    while (this.#groups.size > maxGroupsPerKey && this.#forgetFirst());
    this.#moveTo(group, this.now);
    return this.#groups.size > maxGroupsPerKey;
  }

  /** How many groups a copy remembers. */
  #countKept(original: GroupLimits): number {
    const kept = this.#names.filter((name) => {
      const untouched = this.#groups.has(name) ? undefined : original.#groups.get(name);
      return untouched && untouched.idleAt > this.now ? true : this.#isKept(this.#at(name));
    });
    return kept.length;
  }

  /** An approval of a group is about to count. @returns false if there is no memory for it */
  remember(id: string, name: string): boolean {
    if (this.#groupOf.has(id)) return true;
    this.#forgetIds();
    const group = this.#at(name);
    const bytes = BYTES_PER_ID + (group.isPaid ? 0 : BYTES_PER_GROUP);
    if (!this.key.budget.take(bytes)) return false;
    group.isPaid = true;
    this.#groupOf.set(id, name);
    return true;
  }

  /** What counts in a group has changed. */
  noteChange(name: string): void {
    const group = this.#at(name);
    group.hasChanged = true;
    this.#noteIdleAt(group);
  }

  /** A group may be stopped now, or not any more. */
  noteStop(name: string): void {
    this.#noteIdleAt(this.#at(name));
  }

  #noteIdleAt(group: Group): void {
    if (!this.#isChanged(group) && !group.hasMoved) return;
    group.hasMoved = true;
    group.isStopped = this.key.isStopped(group.name);
    this.#moveTo(group, this.#isIdle(group) ? this.now : this.#idleAt(group));
  }

  /** The groups that may have more room than before the operation, which are to have their turns again if they were stopped. */
  takeChanged(): readonly string[] {
    if (!this.#haveAllRoom)
      return this.#current.filter((group) => this.#mayHaveRoom(group)).map(({ name }) => name);
    this.#haveAllRoom = false;
    return this.#names;
  }

  /** The names of all groups of which something is remembered. */
  get #names(): readonly string[] {
    const ofOriginal = this.#original ? this.#original.#groups.keys() : [];
    return [...new Set([...this.#groups.keys(), ...ofOriginal])];
  }

  #mayHaveRoom(group: Group): boolean {
    const { before, hasRoom } = group;
    const { used, held, holds } = this.#takenBy(group);
    return hasRoom || used < before.used || held < before.held || holds < before.holds;
  }

  #takenBy({ name, limits, pausedUntil }: Group): Taken {
    const { hits = 0, size = 0 } = this.key.holds?.countedIn({ group: name }) ?? {};
    return { used: usedOf(limits), held: hits, holds: size, pausedUntil };
  }

  #isChanged(group: Group): boolean {
    const { before, hasChanged, hasRoom, pausedUntil, name } = group;
    if (hasChanged || hasRoom || pausedUntil !== before.pausedUntil) return true;
    return this.key.isStopped(name) !== group.isStopped;
  }

  /** Whether it is remembered after the operation. */
  #isKept(group: Group): boolean {
    return !this.#isIdle(group) || (group.idleAt > this.now && !this.#isChanged(group));
  }

  beginServing(): void {
    this.#isServing = true;
    this.#serve((limit) => limit.beginServing?.());
  }

  endServing(): void {
    this.#isServing = false;
    this.#serve((limit) => limit.endServing?.());
  }

  #serve(ask: (limit: CountedLimit) => void): void {
    for (const group of this.#current) {
      const { used } = this.#takenBy(group);
      for (const limit of group.limits) ask(limit);
      // A bucket that is served late has drained meanwhile.
      const { used: drained } = this.#takenBy(group);
      const { before } = group;
      group.before = { ...before, used: before.used + drained - used };
    }
  }

  clear(): void {
    for (const group of this.#groups.values()) this.#forget(group);
    this.key.budget.giveBack(this.#groupOf.size * BYTES_PER_ID);
    this.#groupOf.clear();
  }

  /** A group as of the operation. */
  #at(name: string): Group {
    const group = this.#groups.get(name) ?? this.#add(name);
    if (group.operation === this.#operation) return group;
    group.operation = this.#operation;
    this.#current.push(group);
    group.hasRoom = group.pausedUntil > -Infinity && group.pausedUntil <= this.now;
    if (group.hasRoom) group.pausedUntil = -Infinity;
    for (const limit of group.limits) limit.roll(this.now, limit.millis);
    this.#takeRules(group);
    if (this.#isIdle(group)) group.limits = this.#create(name);
    if (this.#isServing) for (const limit of group.limits) limit.beginServing?.();
    group.before = this.#takenBy(group);
    group.hasChanged = false;
    group.hasMoved = false;
    this.#noteIdleAt(group);
    return group;
  }

  #add(name: string): Group {
    const original = this.#original && this.#original.#groups.get(name);
    const group: Group = {
      name,
      limits: original?.limits.map((limit) => limit.copy(this.key)) ?? this.#create(name),
      rules: original?.rules ?? this.rules,
      operation: -1,
      pausedUntil: original?.pausedUntil ?? -Infinity,
      idleAt: original?.idleAt ?? this.now,
      isStopped: original?.isStopped ?? false,
      isPaid: false,
      before: NOTHING,
      hasChanged: false,
      hasMoved: false,
      hasRoom: false,
      index: 0,
    };
    this.#groups.set(name, group);
    this.#order.add(group);
    return group;
  }

  #rulesOf(name: string): Limit[] {
    return this.rules.map((rule) => limitOfGroup(rule, name));
  }

  #create(name: string): CountedLimit[] {
    return takeRules([], this.#rulesOf(name), this.key, this.now);
  }

  #takeRules(group: Group): void {
    if (group.rules === this.rules) return;
    group.rules = this.rules;
    group.limits = takeRules(group.limits, this.#rulesOf(group.name), this.key, this.now);
  }

  /** Holds have lapsed: groups that are idle by that begin again. */
  beginIdle(): void {
    for (const group of this.#current) {
      if (this.#isIdle(group)) group.limits = this.#create(group.name);
    }
  }

  #isIdle(group: Group): boolean {
    return (
      group.pausedUntil === -Infinity &&
      group.limits.every(({ countsNothing }) => countsNothing) &&
      !this.#isHeldOrStopped(group)
    );
  }

  /** Holds count for a group that has limits. */
  #isHeldOrStopped({ name, limits }: Group): boolean {
    const { size = 0 } = this.key.holds?.countedIn({ group: name }) ?? {};
    return (limits.length > 0 && size > 0) || this.key.isStopped(name);
  }

  #countsUntil({ limits, pausedUntil }: Group): number {
    const counting = limits.filter(({ countsNothing }) => !countsNothing);
    return Math.max(pausedUntil, ...counting.map((limit) => limit.countsUntil));
  }

  #idleAt(group: Group): number {
    return this.#isHeldOrStopped(group) ? Infinity : this.#countsUntil(group);
  }

  #moveTo(group: Group, idleAt: number): void {
    group.idleAt = idleAt;
    this.#order.update(group);
  }

  /** Forgets the group that may be idle first, if it is idle. @returns whether there was one to look at */
  #forgetFirst(): boolean {
    const first = this.#order.first;
    if (!first || first.idleAt > this.now) return false;
    const group = this.#at(first.name);
    group.hasMoved = true;
    if (this.#isIdle(group)) this.#forget(group);
    else this.#moveTo(group, this.#idleAt(group));
    return true;
  }

  #forget(group: Group): void {
    for (const limit of group.limits) limit.clear();
    this.#groups.delete(group.name);
    this.#order.remove(group);
    if (group.isPaid) this.key.budget.giveBack(BYTES_PER_GROUP);
  }

  #forgetIds(): void {
    let looked = 0;
    for (const [id, name] of this.#groupOf) {
      if (looked === IDS_LOOKED_AT) return;
      looked += 1;
      this.#groupOf.delete(id);
      // As of the operation that has looked at the group last: to look at it now would let it take other rules.
      const limits = this.#groups.get(name)?.limits ?? [];
      const counts = limits.some((limit) => limit.takenBy(id) !== undefined);
      if (counts) this.#groupOf.set(id, name);
      else this.key.budget.giveBack(BYTES_PER_ID);
    }
  }
}
