import type { QueueList } from '../../queue-order.js';
import { ListsOfKind } from './lists-of-kind.js';
import { WaitingList } from './waiting-list.js';
import type { Ordered, Queued, Stopped } from './queued.js';

/** The lists of lanes. The one goes first whose head came earliest, less its head start. */
export class Lanes extends ListsOfKind {
  constructor() {
    super('lane');
  }

  override next(stoppedLanes: ReadonlySet<string>): WaitingList | undefined {
    let next: WaitingList | undefined;
    for (const list of this.all()) {
      if (!stoppedLanes.has(list.name) && (!next || isBefore(list.head, next.head))) next = list;
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

  override copy(): Lanes {
    return this.copyTo(new Lanes());
  }

  protected override create(name: string): WaitingList {
    return new WaitingList(this.kind, name);
  }
}

function isBefore(one: Ordered | undefined, other: Ordered | undefined): boolean {
  if (!one || !other) return false;
  const [key, otherKey] = [orderKeyOf(one), orderKeyOf(other)];
  return key === otherKey ? one.ticket < other.ticket : key < otherKey;
}

/** When a waiter would have come without its head start, in microseconds. */
function orderKeyOf({ list, ticket }: Ordered): number {
  return ticket - headStartOf(list) * 1000;
}

function headStartOf(list: QueueList | undefined): number {
  return list?.kind === 'lane' ? list.headStartMillis : 0;
}
