import type { QueueList } from '../../../src/limiter/queue-order.js';
import { listId, ticketInList } from '../stored-queue.js';
import type { OptionalFields } from '../stored-state.js';
import { type Snapshot, type StoredWaiter, Violation } from './snapshot.js';

/** The head of a lane or of a group. */
export interface StoredHead {
  /** Less the head start of its lane inside a group. */
  readonly ticket: number;
  /** Of two heads of a kind, the one with the lower key goes first. */
  readonly key: number;
}

/** What a key with several lists stores of them: lua/queue/lists.lua. */
export interface StoredLists {
  /** The kinds with waiters, the one first that is served first. None in a key with one list. */
  readonly kinds: readonly string[];
  /** The tag that was served last, 0 while no group waits. */
  readonly virtualTime: number;
  /** By the ids of the lanes, and of the groups that are not stopped. */
  readonly heads: ReadonlyMap<string, StoredHead>;
  /** By the ids of the groups that are stopped: their heads, and until when as `key`, which may be infinite. */
  readonly stopped: ReadonlyMap<string, StoredHead>;
}

/** In the order of their names. */
const KINDS = ['fifo', 'group', 'lane'];

export const NO_LISTS: StoredLists = {
  kinds: [],
  virtualTime: 0,
  heads: new Map(),
  stopped: new Map(),
};

type Heads = Readonly<Record<string, string>>;

/** @param heads `<ticket>:<list>` and keys by turns, as `stopped` */
export function readLists(
  { lists = [], virtual_time: virtualTime = 0 }: OptionalFields,
  heads: Heads,
  stopped: Heads,
): StoredLists {
  return { kinds: lists, virtualTime, heads: readHeads(heads), stopped: readHeads(stopped) };
}

function readHeads(heads: Heads): Map<string, StoredHead> {
  return new Map(
    Object.entries(heads).map(([head, key]) => {
      const [, ticket, id = ''] = /^(\d+):(.*)$/.exec(head) ?? [];
      return [id, { ticket: Number(ticket), key: key === 'inf' ? Infinity : Number(key) }];
    }),
  );
}

/** A list as Redis keeps it of a request: without what only its check says. */
export function keptList(list: QueueList): QueueList {
  const { kind, name, headStartMillis = 0 } = list;
  if (kind === 'lane') return { kind, name, headStartMillis };
  return { kind, name, weight: list.weight, maxRequests: undefined, headStartMillis };
}

/** The waiters in the order of their turns inside their lists. */
export function inOrder<Waiter extends Pick<StoredWaiter, 'ticket' | 'list'>>(
  waiting: Iterable<readonly [id: string, waiter: Waiter]>,
): (readonly [id: string, waiter: Waiter])[] {
  return [...waiting].sort(([id, one], [otherId, other]) => {
    return ticketInList(one) - ticketInList(other) || (id < otherId ? -1 : 1);
  });
}

/** The id of a waiter's list; `fifo:` without a lane or a group. */
export function listIdOf({ list }: Partial<Pick<StoredWaiter, 'list'>>): string {
  return list ? listId(list) : 'fifo:';
}

export function kindOf({ list }: Pick<StoredWaiter, 'list'>): string {
  return list?.kind ?? 'fifo';
}

/** When a waiter of a lane has its turn: its ticket less its head start. 0 for others. */
export function keyInLanes({ list, ticket }: Pick<StoredWaiter, 'list' | 'ticket'>): number {
  return list?.kind === 'lane' ? ticket - 1000 * list.headStartMillis : 0;
}

/** What the turn of a waiter adds to the tag of its group. */
export function shareOf({ list, hits }: Pick<StoredWaiter, 'list' | 'hits'>): number {
  return hits / (list?.kind === 'group' ? list.weight : 1);
}

/** The lists as the next script finds them that looks at the queue: if a kind has lost its heads, all are found again. */
export function withRestoredHeads<Stored extends Pick<Snapshot, 'waiting' | 'lists'>>(
  stored: Stored,
): Stored {
  const { waiting, lists } = stored;
  const places = inOrder(waiting).map(([, place]) => place);
  const hasHead = (kind: string): boolean =>
    kind === 'fifo'
      ? places.some((place) => kindOf(place) === kind)
      : [...lists.heads.keys(), ...lists.stopped.keys()].some((id) => id.startsWith(`${kind}:`));
  if (lists.kinds.every(hasHead)) return stored;
  const kinds = KINDS.filter((kind) => places.some((place) => kindOf(place) === kind));
  const heads = new Map<string, StoredHead>();
  for (const place of places) {
    const id = listIdOf(place);
    if (!place.list || heads.has(id)) continue;
    const tag = lists.virtualTime + shareOf(place);
    const key = kindOf(place) === 'lane' ? keyInLanes(place) : tag;
    heads.set(id, { ticket: ticketInList(place), key });
  }
  return { ...stored, lists: { ...lists, kinds, heads, stopped: new Map() } };
}

/** The waiter whose turn comes next; undefined if nobody waits, or only groups that are stopped. */
export function nextWaiter({
  waiting,
  lists,
}: Pick<Snapshot, 'waiting' | 'lists'>): StoredWaiter | undefined {
  const first = [...waiting.values()];
  if (lists.kinds.length === 0) return first[0];
  for (const kind of lists.kinds) {
    if (kind === 'fifo') return first.find((waiter) => kindOf(waiter) === kind);
    const heads = [...lists.heads].filter(([id]) => id.startsWith(`${kind}:`));
    const [next] = heads.sort(([, a], [, b]) => a.key - b.key || a.ticket - b.ticket);
    if (!next) continue;
    const [id, { ticket }] = next;
    return first.find((waiter) => listIdOf(waiter) === id && ticketInList(waiter) === ticket);
  }
  return undefined;
}

/**
 * What is wrong with the heads: each lane and each group with waiters has its first one as its head, and no other has any. The
 * kinds with waiters are known.
 */
export function headsFault({ waiting, lists }: Snapshot): Violation | undefined {
  const places = inOrder(waiting).map(([, place]) => place);
  const hasLists = places.some(({ list }) => list);
  const { kinds, heads, stopped, virtualTime } = lists;
  const kindsThere = hasLists || kinds.length > 0 ? new Set(places.map(kindOf)) : new Set();
  if (kinds.length !== kindsThere.size || kinds.some((kind) => !kindsThere.has(kind))) {
    return new Violation('the kinds of lists with waiters are known', kinds.join(' '));
  }
  const first = new Map<string, StoredWaiter>();
  for (const place of places) {
    if (place.list && !first.has(listIdOf(place))) first.set(listIdOf(place), place);
  }
  for (const id of new Set([...first.keys(), ...heads.keys(), ...stopped.keys()])) {
    const [place, head] = [first.get(id), heads.get(id) ?? stopped.get(id)];
    const isLane = place?.list?.kind === 'lane';
    const isRight = isLane ? head?.key === keyInLanes(place) : !Number.isNaN(head?.key);
    const isThere = place !== undefined && ticketInList(place) === head?.ticket;
    if (isThere && isRight && !(heads.has(id) && stopped.has(id))) continue;
    const detail = `${id} has ${JSON.stringify(head)}, not ${place?.ticket}`;
    return new Violation('the first of a list is its head', detail);
  }
  if (virtualTime !== 0 && !kindsThere.has('group')) {
    return new Violation('groups begin again when none waits', `at ${virtualTime}`);
  }
  return undefined;
}
