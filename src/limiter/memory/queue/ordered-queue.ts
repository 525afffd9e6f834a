import type { QueueList, QueueListState } from '../../queue-order.js';
import { Groups } from './groups.js';
import { Lanes } from './lanes.js';
import { FifoList, type ListsOfKind } from './lists-of-kind.js';
import type { Entry, WaitingList } from './waiting-list.js';
import { nextTicket } from './tickets.js';
import type { Joining, Queued, Stopped, Waiting } from './queued.js';
import type { WaitingQueue } from './waiting-queue.js';

/**
 * A queue with several lists: of lanes or of groups, and after other rules, of more kinds. The kind goes first that has had
 * waiters for longer, until nobody waits there. `lua/queue/lists.lua` has the same rules.
 */
export class OrderedQueue implements WaitingQueue {
  #waiters = new Map<string, Entry>();
  /** Those with waiters, in the order in which they began to have some. */
  #kinds: ListsOfKind[] = [];
  /** Whether it is a copy, which still has the waiters that were taken from it. */
  #isCopy = false;
  /** Whether the kinds are those of the queue of which this is a copy, which has taken none yet. */
  #isShared = false;

  constructor(public lastTicket: number) {}

  /** A queue with the waiters of another one. */
  static of(queue: WaitingQueue): OrderedQueue {
    const ordered = new OrderedQueue(queue.lastTicket);
    for (const waiter of queue.first(queue.size)) ordered.#add(waiter);
    return ordered;
  }

  get size(): number {
    return this.#kinds.reduce((sum, { size }) => sum + size, 0);
  }

  copy(): OrderedQueue {
    const copy = new OrderedQueue(this.lastTicket);
    copy.#waiters = this.#waiters;
    copy.#kinds = this.#kinds;
    copy.#isCopy = true;
    copy.#isShared = true;
    return copy;
  }

  join(now: number, joining: Joining): void {
    this.lastTicket = nextTicket(now, this.lastTicket);
    this.#add({ ...joining, ticket: this.lastTicket });
  }

  find(requestId: string): Queued | undefined {
    return this.#find(requestId)?.waiter;
  }

  replace(waiter: Queued): void {
    const entry = this.#find(waiter.requestId);
    if (entry) entry.waiter = waiter;
  }

  remove(requestId: string): boolean {
    const entry = this.#find(requestId);
    if (!entry) return false;
    this.#waiters.delete(requestId);
    this.#kindOf(entry.waiter.list)?.remove(entry);
    this.#endEmptyKinds();
    return true;
  }

  takeNext(approve: (waiter: Queued) => Stopped | undefined): string[] {
    const taken: string[] = [];
    this.#visit((list, head) => {
      const stopped = approve(head);
      if (stopped) return stopped;
      taken.push(head.requestId);
      this.#takeHead(list, head);
      return undefined;
    });
    return taken;
  }

  stoppedHeads(stoppedBy: (head: Queued) => Stopped): Queued[] {
    const heads: Queued[] = [];
    this.#visit((_list, head) => {
      heads.push(head);
      return stoppedBy(head);
    });
    return heads;
  }

  isNext(now: number, check: Waiting, stoppedBy: (head: Queued) => Stopped): boolean {
    const newcomer = { ...check, ticket: nextTicket(now, this.lastTicket) };
    for (const kind of this.#kinds) {
      if (!kind.letPass(newcomer, stoppedBy)) return false;
      // The kinds behind its own have their turns later.
      if (kind.kind === kindOf(check.list)) return true;
    }
    return true;
  }

  approvedAtOnce(check: Waiting): void {
    this.#kindOf(check.list)?.approvedAtOnce(check);
  }

  positionOf(requestId: string): number | undefined {
    const entry = this.#find(requestId);
    return entry && this.#listOf(entry.waiter.list)?.positionOf(entry);
  }

  countIn(list: QueueList | undefined): number {
    return this.#listOf(list)?.size ?? 0;
  }

  first(most: number): Queued[] {
    const first: Queued[] = [];
    this.copy().takeNext((waiter) => {
      if (first.length === most) return 'all';
      first.push(waiter);
      return undefined;
    });
    return first;
  }

  lists(): readonly WaitingList[] {
    return this.#kinds.flatMap((kind) => [...kind.all()]);
  }

  #add(waiter: Queued): void {
    const kind = this.#kindOf(waiter.list) ?? this.#begin(waiter.list);
    this.#waiters.set(waiter.requestId, kind.add(waiter));
  }

  #find(requestId: string): Entry | undefined {
    const entry = this.#waiters.get(requestId);
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
    const kind = listsOf(kindOf(list));
    this.#kinds.push(kind);
    return kind;
  }

  #endEmptyKinds(): void {
    if (this.#kinds.some(({ size }) => size === 0)) {
      this.#kinds = this.#kinds.filter(({ size }) => size > 0);
    }
  }

  /**
   * Visits the heads in the order of their turns, without those that are stopped.
   * @param visit returns the waiters that a head stops; undefined if it was taken
   */
  #visit(visit: (list: WaitingList, head: Queued) => Stopped | undefined): void {
    const stoppedLanes = new Set<string>();
    for (;;) {
      const list = this.#next(stoppedLanes);
      if (!list?.head) return;
      const stopped = visit(list, list.head);
      if (stopped === 'all') return;
      for (const lane of stopped ?? []) stoppedLanes.add(lane);
    }
  }

  #next(stoppedLanes: ReadonlySet<string>): WaitingList | undefined {
    for (const kind of this.#kinds) {
      const list = kind.next(stoppedLanes);
      if (list) return list;
    }
    return undefined;
  }

  /** The head of a list is approved. */
  #takeHead(list: WaitingList, head: Queued): void {
    if (this.#isShared) {
      this.#kinds = this.#kinds.map((kind) => kind.copy());
      this.#isShared = false;
    }
    this.#kindOf(head.list)?.approveHead(list.name);
    if (!this.#isCopy) {
      list.forgetTaken();
      this.#waiters.delete(head.requestId);
    }
    this.#endEmptyKinds();
  }
}

function kindOf(list: QueueList | undefined): QueueListState['kind'] {
  return list?.kind ?? 'fifo';
}

function listsOf(kind: QueueListState['kind']): ListsOfKind {
  switch (kind) {
    case 'fifo':
      return new FifoList();
    case 'lane':
      return new Lanes();
    case 'group':
      return new Groups();
  }
}
