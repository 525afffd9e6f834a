import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { Queued, WaitingList } from '../../../src/limiter/memory/queue/waiting-list.js';
import type { WaitingQueue } from '../../../src/limiter/memory/queue/waiting-queue.js';
import { listId, ticketInList } from '../stored-queue.js';
import { idOf, uuidOf } from './model-ids.js';
import type { Snapshot, StoredWaiter } from './snapshot.js';
import { inOrder, kindOf, listIdOf, shareOf } from './stored-lists.js';

/** A waiter, as far as its turn goes. */
type Place = Pick<StoredWaiter, 'ticket' | 'list' | 'hits'>;

/** More than any tag. */
const AFTER_ALL = Number.MAX_SAFE_INTEGER;
/** Ids and a name that no request and no group has. */
const SERVED = uuidOf('?');
const OTHER_GROUP = '?';

/**
 * Gives a queue of the embedded limiter the tickets and the lists that Redis has stored, with the order of their turns.
 * @param queue which all waiters have joined
 * @param waiters those that are stored, and those that are put back
 */
export function restoreLists(
  queue: WaitingQueue,
  waiters: ReadonlyMap<string, Place>,
  stored: Pick<Snapshot, 'lists' | 'waiting'>,
): void {
  const kinds = kindsOf(waiters, stored);
  const all = inOrder(waiters);
  const queued = all.map(([id, place]) => ({ ...queue.find(uuidOf(id))!, ticket: place.ticket }));
  for (const { requestId } of queued) queue.remove(requestId);
  for (const kind of kinds) {
    const ofKind = all.map(([, place], i) => ({ place, waiter: queued[i]! }));
    const some = ofKind.filter(({ place }) => kindOf(place) === kind);
    if (kind === 'group') beginGroups(queue, some, stored);
    for (const { waiter } of some) {
      if (!queue.find(waiter.requestId)) queue.join(0, withoutLane(waiter));
    }
  }
  // They have joined in the order of their turns. What follows goes by their tickets.
  for (const waiter of queued) queue.replace(waiter);
}

/** Without the head start of a lane inside its group. */
function withoutLane(waiter: Queued): Queued {
  const { list } = waiter;
  return list?.kind === 'group' ? { ...waiter, list: { ...list, headStartMillis: 0 } } : waiter;
}

/** The kinds of lists, the one first that is served first. */
function kindsOf(
  waiters: ReadonlyMap<string, Place>,
  { lists, waiting }: Pick<Snapshot, 'lists' | 'waiting'>,
): Set<string> {
  const hasOneList = lists.kinds.length === 0 && waiting.size > 0;
  const putBack = [...waiters].filter(([id]) => !waiting.has(id)).map(([, place]) => place);
  return new Set([...(hasOneList ? ['fifo'] : lists.kinds), ...putBack.map(kindOf)]);
}

/**
 * Adds the first waiters of groups, with the stored tags. A tag follows from hits, so at first others wait there whose hits
 * make it.
 */
function beginGroups(
  queue: WaitingQueue,
  waiters: readonly { readonly place: Place; readonly waiter: Queued }[],
  stored: Pick<Snapshot, 'lists' | 'waiting'>,
): void {
  const ids = waiters.map(({ place }) => listIdOf(place));
  const firsts = waiters.filter((_, i) => ids.indexOf(ids[i]!) === i);
  for (const [i, { place }] of firsts.entries()) join(queue, uuidOf(`?${i}`), place, AFTER_ALL);
  const { virtualTime } = stored.lists;
  if (virtualTime > 0) {
    const list = { kind: 'group', name: OTHER_GROUP, weight: 1, maxRequests: undefined } as const;
    join(queue, SERVED, { list }, virtualTime);
    queue.takeNext(({ requestId, list: of }) => {
      if (requestId === SERVED) return undefined;
      return of?.kind === 'lane' ? [of.name] : 'all';
    });
  }
  for (const [i, { place, waiter }] of firsts.entries()) {
    join(queue, waiter.requestId, place, tagOf(place, stored));
    queue.remove(uuidOf(`?${i}`));
  }
}

/** As if the weight of its group were 1. */
function join(
  queue: WaitingQueue,
  requestId: string,
  { list }: Pick<Place, 'list'>,
  hits: number,
): void {
  const weightless: QueueList | undefined =
    list?.kind === 'group' ? { ...list, weight: 1, headStartMillis: 0 } : list;
  queue.join(0, { requestId, hits, list: weightless });
}

/** The tag of a group with this first waiter, which may have been put back. */
function tagOf(
  first: Place,
  { lists: { virtualTime, heads }, waiting }: Pick<Snapshot, 'lists' | 'waiting'>,
): number {
  const head = heads.get(listIdOf(first));
  if (!head) return virtualTime + shareOf(first);
  const ofList = [...waiting.values()].filter((each) => listIdOf(each) === listIdOf(first));
  const before = ofList.find((each) => ticketInList(each) === head.ticket) ?? first;
  if (shareOf(before) === shareOf(first)) return head.key;
  return Math.max(virtualTime, head.key - shareOf(before) + shareOf(first));
}

/** Of each list its waiters in their order, and the tag of a group. */
type ShownList = readonly [id: string, waiters: readonly string[], tag: string | undefined];

/** The lists of a key: the kinds in their order, each list, and the virtual time. Tags may differ by rounding. */
export interface ShownLists {
  readonly kinds: readonly string[];
  readonly lists: readonly ShownList[];
  readonly virtualTime: string;
}

const ONE_LIST: ShownLists = { kinds: [], lists: [], virtualTime: shownTag(0) };

/** The lists as Redis has them. */
export function storedLists({ lists, waiting }: Pick<Snapshot, 'lists' | 'waiting'>): ShownLists {
  const { kinds, heads, virtualTime } = lists;
  if (!kinds.some((kind) => kind !== 'fifo')) return ONE_LIST;
  const ids = inOrder(waiting).map(([id, place]) => [id, listIdOf(place)] as const);
  const shown = [...new Set(ids.map(([, list]) => list))].map((list): ShownList => {
    const isGroup = list.startsWith('group:');
    const key = isGroup ? shownTag(heads.get(list)?.key ?? NaN) : undefined;
    return [list, ids.filter(([, of]) => of === list).map(([id]) => id), key];
  });
  return { kinds, lists: sorted(shown), virtualTime: shownTag(virtualTime) };
}

/** The same of the embedded limiter. */
export function listsOf(queue: WaitingQueue): ShownLists {
  const all = queue.lists();
  if (!all.some(({ kind }) => kind !== 'fifo')) return ONE_LIST;
  const waiters = queue.first(queue.size).map(({ requestId }) => queue.find(requestId)!);
  const shown = all.map(({ kind, name, tag }): ShownList => {
    const ofList = waiters.filter(
      ({ list }) => (list?.kind ?? 'fifo') === kind && (list?.name ?? '') === name,
    );
    const ids = ofList.map(({ requestId }) => idOf(requestId));
    const id = ofList[0]?.list ? listId(ofList[0].list) : 'fifo:';
    return [id, ids, kind === 'group' ? shownTag(tag) : undefined];
  });
  const kinds = [...new Set(all.map(({ kind }) => kind))];
  return { kinds, lists: sorted(shown), virtualTime: shownTag(virtualTimeOf(queue)) };
}

/** It shows in the tag of a request without hits. */
function virtualTimeOf(queue: WaitingQueue): number {
  if (!queue.lists().some(({ kind }) => kind === 'group')) return 0;
  const list = { kind: 'group', name: OTHER_GROUP, weight: 1, maxRequests: undefined } as const;
  join(queue, SERVED, { list }, 0);
  const isJoined = ({ kind, name }: WaitingList) => kind === 'group' && name === OTHER_GROUP;
  const { tag } = queue.lists().find(isJoined)!;
  queue.remove(SERVED);
  return tag;
}

function sorted(lists: readonly ShownList[]): readonly ShownList[] {
  return lists.toSorted(([a], [b]) => a.localeCompare(b));
}

function shownTag(tag: number): string {
  return tag.toFixed(6);
}
