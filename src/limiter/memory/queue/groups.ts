import { DEFAULT_WEIGHT } from '../../queue-order.js';
import type { RequestTerms } from '../../request.js';
import { Heap } from '../heap.js';
import { ListsOfKind } from './lists-of-kind.js';
import { WaitingList } from './waiting-list.js';
import type { Ordered, Queued } from './queued.js';

/** The list of a group. */
class Group extends WaitingList {
  /** The virtual time at which its head has its turn. */
  tag = 0;
  /** In the heap. */
  index = 0;
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
export class Groups extends ListsOfKind<Group> {
  #virtualTime = 0;
  readonly #turns = new Heap<Group>(isBefore, noteIndex);

  constructor() {
    super('group');
  }

  /** No limit of lanes counts a group, so that the head of a group stops all of them. */
  override next(): Group | undefined {
    return this.#turns.first;
  }

  /** What stops the head of a group stops all lists. */
  override letPass(newcomer: Ordered): boolean {
    const { list } = newcomer;
    const first = this.#turns.first;
    if (list?.kind !== 'group' || this.find(list.name)) return false;
    return !first || this.#virtualTime + shareOf(newcomer) < first.tag;
  }

  override approvedAtOnce(check: RequestTerms): void {
    this.#virtualTime += shareOf(check);
  }

  override copy(): Groups {
    const copy = this.copyTo(new Groups());
    copy.#virtualTime = this.#virtualTime;
    // In the order of a heap, so that each stays where it is added.
    for (const { name, tag } of this.#turns.all) {
      const group = copy.find(name);
      if (!group) continue;
      group.tag = tag;
      copy.#turns.add(group);
    }
    return copy;
  }

  protected override create(name: string): Group {
    return new Group(this.kind, name);
  }

  protected override begun(group: Group): void {
    group.tag = this.#virtualTime + shareOf(group.head);
    this.#turns.add(group);
  }

  protected override headLeft(group: Group, gone: Queued, isApproved: boolean): void {
    if (isApproved) this.#virtualTime = group.tag;
    if (!group.head) {
      this.#turns.removeAt(group.index);
      return;
    }
    const [before, now] = [shareOf(gone), shareOf(group.head)];
    if (isApproved) group.tag += now;
    // Rounding must not change it if the shares are the same.
    else if (before !== now) group.tag = Math.max(this.#virtualTime, group.tag - before + now);
    this.#turns.update(group.index);
  }
}

function noteIndex(group: Group, index: number): void {
  group.index = index;
}

function isBefore(one: Group, other: Group): boolean {
  if (one.tag !== other.tag) return one.tag < other.tag;
  return (one.head?.ticket ?? 0) < (other.head?.ticket ?? 0);
}

/** What the approval of a waiter adds to the tag of its group. */
function shareOf(waiter: RequestTerms | undefined): number {
  const { hits = 1, list } = waiter ?? {};
  return hits / (list?.kind === 'group' ? list.weight : DEFAULT_WEIGHT);
}
