import type { QueueListState } from '../../queue-order.js';
import type { RequestTerms } from '../../request.js';
import { type Entry, WaitingList } from './waiting-list.js';
import type { Ordered, Queued, Stopped } from './queued.js';

/** The lists of one kind in which somebody waits, and the order of their turns. */
export abstract class ListsOfKind<List extends WaitingList = WaitingList> {
  protected readonly lists = new Map<string, List>();
  #size = 0;

  constructor(readonly kind: QueueListState['kind']) {}

  /** How many wait in all of them. */
  get size(): number {
    return this.#size;
  }

  /** In the order in which they began to have waiters. */
  all(): Iterable<List> {
    return this.lists.values();
  }

  /** @param name '' for the only list of its kind */
  find(name: string): List | undefined {
    return this.lists.get(name);
  }

  /** Returns the list whose head has its turn next; undefined if all are stopped. */
  abstract next(stoppedLanes: ReadonlySet<string>): List | undefined;

  /**
   * Whether a check that joined now would pass all who wait in these lists: they would wait behind it, or for room that it does
   * not need. By default it passes nobody: a head without a lane stops all lists.
   * @param stoppedBy as in `WaitingQueue`
   */
  letPass(_newcomer: Ordered, _stoppedBy: (head: Queued) => Stopped): boolean {
    return false;
  }

  /** A check of this kind was approved at once, as if it had joined and had its turn. */
  approvedAtOnce(_check: RequestTerms): void {
    // As in `begun`.
  }

  /** Returns a copy from which heads may be taken. It is valid until a waiter is added here or removed. */
  abstract copy(): ListsOfKind;

  add(waiter: Queued): Entry {
    const name = waiter.list?.name ?? '';
    const before = this.lists.get(name);
    const list = before ?? this.create(name);
    const entry = list.append(waiter);
    this.#size += 1;
    if (!before) {
      this.lists.set(name, list);
      this.begun(list);
    }
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

  protected abstract create(name: string): List;

  /** A list has its first waiter. */
  protected begun(_list: List): void {
    // Kinds whose order follows from the heads need to know nothing.
  }

  /** A list has another head, or none. @param gone its head before */
  protected headLeft(_list: List, _gone: Queued, _isApproved: boolean): void {
    // As above.
  }

  protected copyTo<Copy extends ListsOfKind<List>>(copy: Copy): Copy {
    for (const [name, list] of this.lists) copy.lists.set(name, list.copyTo(copy.create(name)));
    copy.#size = this.#size;
    return copy;
  }

  #left(list: List, goneHead: Queued | undefined, isApproved: boolean): void {
    this.#size -= 1;
    if (list.size === 0) this.lists.delete(list.name);
    if (goneHead) this.headLeft(list, goneHead, isApproved);
  }
}

/** The list of the waiters without a lane or a group, which joined by other rules. */
export class FifoList extends ListsOfKind {
  constructor() {
    super('fifo');
  }

  /** No lane counts for it. */
  override next(): WaitingList | undefined {
    return this.find('');
  }

  override copy(): FifoList {
    return this.copyTo(new FifoList());
  }

  protected override create(): WaitingList {
    return new WaitingList(this.kind, '');
  }
}
