import type { QueueList, QueueListState } from '../../queue-order.js';
import type { LimitedRequest, RequestTerms } from '../../request.js';
import { Groups, Lanes, ListsOfKind } from './lists.js';
import {
  type Entry,
  nextTicket,
  type Queued,
  type Stopped,
  type WaitingList,
} from './waiting-list.js';

const KINDS = { fifo: ListsOfKind, lane: Lanes, group: Groups } as const;

/** Shared by all keys without waiters, which are most. */
const NO_KINDS: readonly ListsOfKind[] = [];

/**
 * The waiting requests of a key, and the order of their turns. They wait in one list, in the lists of lanes or of groups, and
 * after other rules, in lists of more kinds. The kind goes first that has had waiters for longer, until nobody waits
 * there. `lua/queue/queue.lua` and `lua/queue/lists.lua` have the same rules.
 */
export class WaitingQueue {
  /** By their ids. Undefined until somebody waits, since most keys never have a waiter. */
  #waiters: Map<string, Entry> | undefined;
  /** Those with waiters, in the order in which they began to have some. */
  #kinds = NO_KINDS;
  #size = 0;
  /** Whether a lane or a group has had a waiter since nobody waited. */
  #hasLists = false;
  /** Whether it is a copy, which still has the waiters that were taken from it. */
  #isCopy = false;
  /** Whether the kinds are those of the queue of which this is a copy, which has taken none yet. */
  #isShared = false;

  /** @param lastTicket of the waiter that joined last; before, when the key was created, in microseconds */
  constructor(public lastTicket: number) {}

  get size(): number {
    return this.#size;
  }

  /** Returns a copy from which requests may be taken. It is valid until this queue changes. */
  copy(): WaitingQueue {
    const copy = new WaitingQueue(this.lastTicket);
    copy.#waiters = this.#waiters;
    copy.#kinds = this.#kinds;
    copy.#size = this.#size;
    copy.#hasLists = this.#hasLists;
    copy.#isCopy = true;
    copy.#isShared = true;
    return copy;
  }

  /** A request joins the end of its list. @param now in milliseconds */
  join(now: number, joining: LimitedRequest): void {
    this.#hasLists = joining.list !== undefined || (this.#hasLists && this.#size > 0);
    this.lastTicket = nextTicket(now, this.lastTicket);
    const waiter = { ...joining, ticket: this.lastTicket };
    const kind = this.#kindOf(waiter.list) ?? this.#begin(waiter.list);
    this.#waiters ??= new Map();
    this.#waiters.set(waiter.requestId, kind.add(waiter));
    this.#size += 1;
  }

  /** Returns a request that waits. */
  find(requestId: string): Queued | undefined {
    return this.#find(requestId)?.waiter;
  }

  /** Replaces a request that waits with one that has its place. */
  replace(waiter: Queued): void {
    const entry = this.#find(waiter.requestId);
    if (entry) entry.waiter = waiter;
  }

  /** @returns the request, if it waited */
  remove(requestId: string): Queued | undefined {
    const entry = this.#find(requestId);
    if (!entry) return undefined;
    this.#waiters?.delete(requestId);
    this.#size -= 1;
    this.#kindOf(entry.waiter.list)?.remove(entry);
    this.#endEmptyKinds();
    return entry.waiter;
  }

  /**
   * Takes requests, each when it is the next, until all are stopped.
   * @param approve returns undefined if it approves a request, and otherwise the waiters that the request stops
   * @param stoppedUntil says when a head that stops its group alone may have room
   * @returns their ids, in this order
   */
  takeNext(
    approve: (waiter: Queued) => Stopped | undefined,
    stoppedUntil: (waiter: Queued) => number = () => Infinity,
  ): string[] {
    const taken: string[] = [];
    this.#visit((list, head) => {
      const stopped = approve(head);
      if (!stopped) {
        taken.push(head.requestId);
        this.#takeHead(list, head);
      } else if (stopped !== 'all' && list.kind === 'group') {
        this.#unshare();
        this.#kindOf(head.list)?.stop?.(list.name, stoppedUntil(head));
      }
      return stopped;
    });
    return taken;
  }

  /** These groups, if they are stopped, may have room now. */
  mayHaveRoom(groups: readonly string[]): void {
    if (this.stoppedUntil === undefined || groups.length === 0) return;
    this.#unshare();
    for (const kind of this.#kinds) for (const name of groups) kind.mayHaveRoom?.(name);
  }

  /**
   * Groups that were stopped have their turns again, if their time has come.
   * @param onBack gets each while it is still stopped
   */
  bringBack(now: number, onBack: (group: string) => void = () => undefined): void {
    if (this.stoppedUntil === undefined) return;
    this.#unshare();
    for (const kind of this.#kinds) {
      for (let first = kind.firstStopped; first; first = kind.firstStopped) {
        if ((first.stoppedUntil ?? now) > now) break;
        onBack(first.name);
        kind.bringBack?.(first.name);
      }
    }
  }

  /** When a group that is stopped may have room; undefined if none is. */
  get stoppedUntil(): number | undefined {
    for (const { firstStopped } of this.#kinds) if (firstStopped) return firstStopped.stoppedUntil;
    return undefined;
  }

  /** Returns the head of a group that is stopped; undefined if it is not. */
  stoppedHead(name: string): Queued | undefined {
    const group = this.#kinds.find(({ kind }) => kind === 'group')?.find(name);
    return group?.stoppedUntil === undefined ? undefined : group.head;
  }

  /**
   * Returns the requests that would be approved next if they had room: the head of the queue, and behind it the heads of
   * lists that are not stopped.
   * @param stoppedBy returns the waiters that a head stops
   */
  stoppedHeads(stoppedBy: (head: Queued) => Stopped): Queued[] {
    const heads: Queued[] = [];
    this.#visit((_list, head) => {
      heads.push(head);
      return stoppedBy(head);
    });
    return heads;
  }

  /**
   * Whether a check that joined now would be approved next if it had room. It passes only those who would wait behind it,
   * and those who wait for room that it does not need.
   * @param stoppedBy as for {@link stoppedHeads}
   */
  isNext(now: number, check: RequestTerms, stoppedBy: (head: Queued) => Stopped): boolean {
    const newcomer = { ...check, ticket: nextTicket(now, this.lastTicket) };
    for (const kind of this.#kinds) {
      if (!kind.letPass(newcomer, stoppedBy)) return false;
      // The kinds behind its own have their turns later.
      if (kind.kind === kindOf(check.list)) return true;
    }
    return true;
  }

  /** A check is approved that would be next, as if it had joined and had its turn. */
  approvedAtOnce(check: RequestTerms): void {
    this.#kindOf(check.list)?.approvedAtOnce?.(check);
  }

  /** Returns the position of a request in its list, as in `PlaceInQueue`; undefined if it does not wait. */
  positionOf(requestId: string): number | undefined {
    const entry = this.#find(requestId);
    return entry && this.#listOf(entry.waiter.list)?.positionOf(entry);
  }

  /** How many wait in a list. @param list undefined: the list of the waiters without a lane or a group */
  countIn(list: QueueList | undefined): number {
    return this.#listOf(list)?.size ?? 0;
  }

  /** Returns the requests whose turns come first, in this order. */
  first(most: number): Queued[] {
    const first: Queued[] = [];
    const copy = this.copy();
    copy.bringBack(Infinity);
    copy.takeNext((waiter) => {
      if (first.length === most) return 'all';
      first.push(waiter);
      return undefined;
    });
    return first;
  }

  /** Returns the lists in which somebody waits; none if all wait in one list, first come, first served. */
  lists(): readonly WaitingList[] {
    return this.#hasLists ? this.#kinds.flatMap((kind) => [...kind.all()]) : [];
  }

  #find(requestId: string): Entry | undefined {
    const entry = this.#waiters?.get(requestId);
    const isHere = entry && (!this.#isCopy || this.#listOf(entry.waiter.list)?.has(entry));
    return isHere ? entry : undefined;
  }

  #kindOf(list: QueueList | undefined): ListsOfKind | undefined {
    const wanted = kindOf(list);
    return this.#kinds.find(({ kind }) => kind === wanted);
  }

  #listOf(list: QueueList | undefined): WaitingList | undefined {
    return this.#kindOf(list)?.find(list?.name ?? '');
  }

  #begin(list: QueueList | undefined): ListsOfKind {
    const kind = new KINDS[kindOf(list)]();
    this.#kinds = [...this.#kinds, kind];
    return kind;
  }

  #endEmptyKinds(): void {
    if (this.#kinds.some(({ isEmpty }) => isEmpty)) {
      this.#kinds = this.#kinds.filter(({ isEmpty }) => !isEmpty);
    }
  }

  /**
   * Visits the heads in the order of their turns, without those that are stopped.
   * @param visit returns the waiters that a head stops; undefined if it was taken
   */
  #visit(visit: (list: WaitingList, head: Queued) => Stopped | undefined): void {
    const all = new Set<string>();
    for (;;) {
      const list = this.#next(all);
      if (!list?.head) return;
      const stopped = visit(list, list.head);
      if (stopped === 'all') return;
      for (const name of stopped ?? []) all.add(name);
    }
  }

  #next(stopped: ReadonlySet<string>): WaitingList | undefined {
    for (const kind of this.#kinds) {
      const list = kind.next(stopped);
      if (list) return list;
    }
    return undefined;
  }

  #unshare(): void {
    if (!this.#isShared) return;
    this.#kinds = this.#kinds.map((kind) => kind.copyTo(new KINDS[kind.kind]()));
    this.#isShared = false;
  }

  /** The head of a list is approved. */
  #takeHead(list: WaitingList, head: Queued): void {
    this.#unshare();
    this.#size -= 1;
    this.#kindOf(head.list)?.approveHead(list.name);
    if (!this.#isCopy) {
      list.forgetTaken();
      this.#waiters?.delete(head.requestId);
    }
    this.#endEmptyKinds();
  }
}

function kindOf(list: QueueList | undefined): QueueListState['kind'] {
  return list?.kind ?? 'fifo';
}
