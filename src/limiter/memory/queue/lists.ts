import { DEFAULT_WEIGHT, type QueueListState } from '../../queue-order.js';
import type { RequestTerms } from '../../request.js';
import { Heap } from '../heap.js';
import {
  type Entry,
  type Ordered,
  orderInList,
  type Queued,
  type Stopped,
  stoppedGroup,
  WaitingList,
} from './waiting-list.js';

/**
 * The lists of one kind in which somebody waits, and the order of their turns. Lanes and groups are subclasses. The kind `fifo`
 * has one list: of the waiters without a lane or a group, which joined by other rules.
 */
export class ListsOfKind {
  readonly kind: QueueListState['kind'] = 'fifo';
  protected readonly lists = new Map<string, WaitingList>();

  /** Whether nobody waits in them. */
  get isEmpty(): boolean {
    return this.lists.size === 0;
  }

  /** In the order in which they began to have waiters. */
  all(): Iterable<WaitingList> {
    return this.lists.values();
  }

  /** @param name '' for the only list of its kind */
  find(name: string): WaitingList | undefined {
    return this.lists.get(name);
  }

  /** Returns the list whose head has its turn next; undefined if all are stopped. @param stopped as in {@link Stopped} */
  next(_stopped: ReadonlySet<string>): WaitingList | undefined {
    return this.find('');
  }

  /** The head of a list lacks room, and stops nobody else: the list waits until it may have room. */
  stop?(name: string, until: number): void;

  /** A list may have room now, if it is stopped. */
  mayHaveRoom?(name: string): void;

  /** A list that was stopped has its turns again. */
  bringBack?(name: string): void;

  /** Of the lists that are stopped, the one that may have room first. */
  get firstStopped(): WaitingList | undefined {
    return undefined;
  }

  /**
   * Whether a check that joined now would pass all who wait in these lists: they would wait behind it, or for room that it does
   * not need. By default it passes nobody: a head without a lane stops all lists.
   * @param stoppedBy as in `WaitingQueue`
   */
  letPass(_newcomer: Ordered, _stoppedBy: (head: Queued) => Stopped): boolean {
    return false;
  }

  /** A check of this kind was approved at once, as if it had joined and had its turn. */
  approvedAtOnce?(check: RequestTerms): void;

  /** Makes others the same as these. Heads may be taken from them, until a waiter is added here or removed. */
  copyTo(copy: this): this {
    for (const [name, list] of this.lists) copy.lists.set(name, list.copy());
    return copy;
  }

  add(waiter: Queued): Entry {
    const name = waiter.list?.name ?? '';
    const before = this.lists.get(name);
    const list = before ?? new WaitingList(this.kind, name);
    const { head } = list;
    const entry = list.add(waiter);
    this.lists.set(name, list);
    if (!head) this.begun?.(list);
    else if (list.head === waiter) this.headLeft?.(list, head, false);
    return entry;
  }

  /** A waiter leaves without an approval. */
  remove(entry: Entry): void {
    const { waiter } = entry;
    const list = this.lists.get(waiter.list?.name ?? '');
    if (!list) return;
    const { head } = list;
    list.remove(entry);
    this.#left(list, head === waiter ? waiter : undefined, false);
  }

  /** The head of a list is approved. @param name of the list */
  approveHead(name: string): void {
    const list = this.lists.get(name);
    if (!list) return;
    const { head } = list;
    list.takeHead();
    this.#left(list, head, true);
  }

  /** A list has its first waiter. Kinds whose order follows from the heads need to know nothing. */
  protected begun?(list: WaitingList): void;

  /** A list has another head, or none. @param gone its head before */
  protected headLeft?(list: WaitingList, gone: Queued, isApproved: boolean): void;

  #left(list: WaitingList, goneHead: Queued | undefined, isApproved: boolean): void {
    if (list.size === 0) this.lists.delete(list.name);
    if (goneHead) this.headLeft?.(list, goneHead, isApproved);
  }
}

/** The lists of lanes. The one goes first whose head came earliest, less its head start. */
export class Lanes extends ListsOfKind {
  override readonly kind = 'lane';

  override next(stopped: ReadonlySet<string>): WaitingList | undefined {
    let next: WaitingList | undefined;
    for (const list of this.all()) {
      if (!stopped.has(list.name) && (!next || isBefore(list.head, next.head))) next = list;
    }
    return next;
  }

  /** It passes lanes that wait for room which it does not need. If it has a lane, the lanes behind it let it pass as well. */
  override letPass(newcomer: Ordered, stoppedBy: (head: Queued) => Stopped): boolean {
    const lane = newcomer.list?.kind === 'lane' ? newcomer.list.name : undefined;
    if (lane !== undefined && this.find(lane)) return false;
    const stoppedLanes = new Set<string>();
    for (let list = this.next(stoppedLanes); list?.head; list = this.next(stoppedLanes)) {
      if (lane !== undefined && isBefore(newcomer, list.head)) return true;
      const stopped = stoppedBy(list.head);
      if (stopped === 'all' || stopped.some((each) => each === lane)) return false;
      for (const each of stopped) stoppedLanes.add(each);
    }
    return true;
  }
}

function isBefore(one: Ordered | undefined, other: Ordered | undefined): boolean {
  if (!one || !other) return false;
  const [key, otherKey] = [orderKeyOf(one), orderKeyOf(other)];
  return key === otherKey ? one.ticket < other.ticket : key < otherKey;
}

/** When a waiter would have come without its head start, in microseconds. */
function orderKeyOf({ list, ticket }: Ordered): number {
  return list?.kind === 'lane' ? ticket - list.headStartMillis * 1000 : ticket;
}

/**
 * The lists of groups, which are served by self-clocked fair queueing (Golestani 1994). The group goes first whose head has the
 * smallest tag. The virtual time is the tag that was served last. The tag of a group is the virtual time at which its
 * head became the head, and the share of that: its hits divided by the weight of its group. Only an approval advances the
 * tag of a group, and no tag is below the virtual time: while a large head waits and then leaves, its group saves up no
 * turns. `lua/queue/lists.lua` has the same rules, and the same arithmetic.
 *
 * While two groups wait, the shares of what each gets differ by at most the largest share of a request of each, unless the
 * one that gets less withdraws its head. A group without waiters is forgotten, since its tag is not above the virtual time
 * then. When no group waits, the virtual time is forgotten as well.
 */
export class Groups extends ListsOfKind {
  override readonly kind = 'group';
  #virtualTime = 0;
  /** Of the groups that are not stopped. */
  readonly #turns = new Heap<WaitingList>(isTurnBefore);
  /** Those that are stopped, by when they may have room. */
  readonly #stopped = new Heap<WaitingList>(mayHaveRoomBefore);

  override next(stopped: ReadonlySet<string>): WaitingList | undefined {
    return this.#firstOf((group) => !stopped.has(stoppedGroup(group.name)));
  }

  /** A check of a group passes groups that their own limits stop, and those that have their turns later. */
  override letPass(newcomer: Ordered, stoppedBy: (head: Queued) => Stopped): boolean {
    const { list } = newcomer;
    if (list?.kind === 'group' && this.find(list.name)) return false;
    const tag = list?.kind === 'group' ? this.#virtualTime + shareOf(newcomer) : Infinity;
    const first = this.#firstOf(
      (group) => tag < group.tag || (group.head !== undefined && stoppedBy(group.head) === 'all'),
    );
    return !first || tag < first.tag;
  }

  override approvedAtOnce(check: RequestTerms): void {
    this.#virtualTime += shareOf(check);
  }

  override stop(name: string, until: number): void {
    const group = this.find(name);
    if (!group) return;
    this.#turns.remove(group);
    group.stoppedUntil = until;
    this.#stopped.add(group);
  }

  override mayHaveRoom(name: string): void {
    const group = this.find(name);
    if (group?.stoppedUntil === undefined) return;
    group.stoppedUntil = -Infinity;
    this.#stopped.update(group);
  }

  /** A group gains nothing from having been stopped. */
  override bringBack(name: string): void {
    const group = this.find(name);
    if (group?.stoppedUntil === undefined) return;
    this.#stopped.remove(group);
    group.stoppedUntil = undefined;
    group.tag = Math.max(group.tag, this.#virtualTime + shareOf(group.head));
    this.#turns.add(group);
  }

  override get firstStopped(): WaitingList | undefined {
    return this.#stopped.first;
  }

  override copyTo(copy: this): this {
    super.copyTo(copy);
    copy.#virtualTime = this.#virtualTime;
    for (const [from, to] of [
      [this.#turns, copy.#turns],
      [this.#stopped, copy.#stopped],
    ] as const) {
      // In the order of a heap, so that each stays where it is added.
      for (const { name, tag, stoppedUntil } of from.all) {
        const group = copy.find(name);
        if (!group) continue;
        Object.assign(group, { tag, stoppedUntil });
        to.add(group);
      }
    }
    return copy;
  }

  protected override begun(group: WaitingList): void {
    group.tag = this.#virtualTime + shareOf(group.head);
    this.#turns.add(group);
  }

  protected override headLeft(group: WaitingList, gone: Queued, isApproved: boolean): void {
    if (isApproved) this.#virtualTime = group.tag;
    const order = group.stoppedUntil === undefined ? this.#turns : this.#stopped;
    if (!group.head) {
      order.remove(group);
      return;
    }
    const [before, now] = [shareOf(gone), shareOf(group.head)];
    if (isApproved) group.tag += now;
    // Rounding must not change it if the shares are the same.
    else if (before !== now) group.tag = Math.max(this.#virtualTime, group.tag - before + now);
    // The next one may need less.
    if (group.stoppedUntil !== undefined) group.stoppedUntil = -Infinity;
    order.update(group);
  }

  /** Returns the first group in the order of turns for which something is true. */
  #firstOf(isWanted: (group: WaitingList) => boolean): WaitingList | undefined {
    const passed: WaitingList[] = [];
    let first = this.#turns.first;
    for (; first && !isWanted(first); first = this.#turns.first) {
      this.#turns.remove(first);
      passed.push(first);
    }
    for (const group of passed) this.#turns.add(group);
    return first;
  }
}

function isTurnBefore(one: WaitingList, other: WaitingList): boolean {
  if (one.tag !== other.tag) return one.tag < other.tag;
  const [order, otherOrder] = [one, other].map(({ head }) => (head ? orderInList(head) : 0));
  if (order !== otherOrder) return (order ?? 0) < (otherOrder ?? 0);
  // As Redis orders what has equal scores.
  return encodeURIComponent(one.name) < encodeURIComponent(other.name);
}

function mayHaveRoomBefore(one: WaitingList, other: WaitingList): boolean {
  return (one.stoppedUntil ?? 0) < (other.stoppedUntil ?? 0);
}

/** What the approval of a waiter adds to the tag of its group. */
function shareOf(waiter: RequestTerms | undefined): number {
  const { hits = 1, list } = waiter ?? {};
  return hits / (list?.kind === 'group' ? list.weight : DEFAULT_WEIGHT);
}
