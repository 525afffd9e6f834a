import { DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import { readQueue, type StoredQueue } from '../stored-queue.js';
import { optionalFields, readStoredState, type StoredState } from '../stored-state.js';
import { LIMIT_NAMES } from './shape.js';
import { readGroups, type StoredGroup } from './stored-groups.js';
import { listIdOf, NO_LISTS, readLists, type StoredLists } from './stored-lists.js';
import { countsAsHeld, holdLengthOf, readRecords, type StoredRecords } from './stored-requests.js';

/** Something that must hold, and did not. */
export class Violation extends Error {
  override readonly name = 'Violation';

  /** @param rule which of the invariants, in a few words that stay the same from case to case */
  constructor(
    readonly rule: string,
    detail: string,
  ) {
    super(`${rule}: ${detail}`);
  }
}

/** What the snapshot script replies. */
export interface RawSnapshot {
  /** Names and values by turns; empty objects are how cjson writes empty lists. */
  readonly state: readonly string[] | Record<string, never>;
  readonly requests: readonly string[] | Record<string, never>;
  readonly past: readonly string[] | Record<string, never>;
  readonly queue: readonly string[] | Record<string, never>;
  readonly records: readonly string[] | Record<string, never>;
  readonly replicas: readonly string[] | Record<string, never>;
  /** Ids and their times by turns. */
  readonly lapses: readonly string[] | Record<string, never>;
  readonly ends: readonly string[] | Record<string, never>;
  /** What approvals take, in two generations of the own limit, and of each of `LIMIT_NAMES`. */
  readonly took: readonly (readonly string[] | Record<string, never>)[];
  /** Of lanes and of groups: heads and their order keys by turns. */
  readonly heads: readonly string[] | Record<string, never>;
  /** Of groups that are stopped: heads and times by turns. */
  readonly stopped: readonly string[] | Record<string, never>;
  /** Ids of groups, and what is stored of them, by turns. */
  readonly groups: readonly string[] | Record<string, never>;
  /** The same ids, and when the groups will be idle. */
  readonly idle: readonly string[] | Record<string, never>;
  /** Of each key, in the order of KEYS. */
  readonly expiry: readonly number[];
  readonly sent: readonly string[] | Record<string, never>;
}

/** A held approval. */
export interface StoredHold {
  readonly lapsesAt: number;
  readonly millis: number;
  readonly hits: number;
  /** The lane in which it counts; undefined without one. */
  readonly lane: string | undefined;
  /** The id of its list. */
  readonly listId: string;
}

/** An approval in a limit that is no fixed window. */
export interface RecentId {
  /** Its step, or its time in µs. */
  readonly mark: number;
  readonly hits: number;
}

/** A place in the queue. */
export interface StoredWaiter {
  readonly ticket: number;
  /** The replica of its check. */
  readonly replica: string;
  /** The id under which Redis counts it: the replica, or `<replica>+<ms>` if it is kept for its caller. */
  readonly countedAs: string;
  readonly hits: number;
  /** Undefined if its approval will not be held. */
  readonly holdMillis: number | undefined;
  /** For how long it is kept for its caller; undefined if it ends with the check. */
  readonly keepMillis: number | undefined;
  /** How long it waits at most, if it is kept; undefined without a bound. */
  readonly maxWaitMillis?: number | undefined;
  /** Without the most that may wait in it. Undefined without a lane or a group. */
  readonly list: QueueList | undefined;
}

/** All that Redis holds of the key of a world. Times are ms since 1970. */
export interface Snapshot {
  readonly state: StoredState | undefined;
  /** The hits of the approvals in the own limit, by their ids: of its window, or of the last two generations. */
  readonly requests: ReadonlyMap<string, number>;
  /** The held approvals, also those that have lapsed since the last call. */
  readonly holds: ReadonlyMap<string, StoredHold>;
  /** When holds lapse, also those that are left from a state that was lost. */
  readonly lapses: ReadonlyMap<string, number>;
  /** Until when requests are remembered whose callers have chosen their ids. */
  readonly ends: ReadonlyMap<string, number>;
  readonly records: StoredRecords;
  /** The ids of past requests. */
  readonly past: ReadonlySet<string>;
  /** By the name of each further limit that has any: what approvals take of it, by their ids. */
  readonly limits: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** What approvals take, by their ids: as `RawSnapshot` has it. Of limits with fixed windows, it has no marks. */
  readonly recent: readonly ReadonlyMap<string, RecentId>[];
  /** By their ids, in the order of their tickets. */
  readonly waiting: ReadonlyMap<string, StoredWaiter>;
  readonly lists: StoredLists;
  /** By their ids, the groups that have anything of limits to themselves, or are paused. */
  readonly groups: ReadonlyMap<string, StoredGroup>;
  /** The ids of the groups that will be idle, which are the same. */
  readonly idleGroups: ReadonlySet<string>;
  readonly leases: Readonly<Record<string, number>>;
  /** Whether the keys of the queue and the records of the waiters say the same. */
  readonly isConsistent: boolean;
  readonly keys: number;
}

export const NOTHING_STORED: Snapshot = {
  state: undefined,
  requests: new Map(),
  holds: new Map(),
  lapses: new Map(),
  ends: new Map(),
  records: new Map(),
  past: new Set(),
  limits: new Map(),
  recent: [],
  waiting: new Map(),
  lists: NO_LISTS,
  groups: new Map(),
  idleGroups: new Set(),
  leases: {},
  isConsistent: true,
  keys: 0,
};

const NO_EXPIRY = -1;
const NOT_THERE = -2;

/** Whether there is no key, or one that has been idle for too long, so that a call begins another or none. */
export function isIdle(snapshot: Snapshot, now: number): boolean {
  const { state, holds, waiting } = snapshot;
  if (!state) return true;
  // Where somebody has removed the holds, the state still counts them.
  const { expires, recoveryUntil, pausedUntil, groupsUntil } = state;
  const { firstLapse = 0 } = state.holds ?? {};
  const until = Math.max(expires, recoveryUntil, pausedUntil, groupsUntil, firstLapse);
  if (until > now) return false;
  const isHeld = [...holds.values()].some(({ lapsesAt }) => lapsesAt > now);
  return !isHeld && ![...waiting.values()].some((waiter) => hasLease(snapshot, waiter, now));
}

/** Whether the lease of a place in the queue has not run out. */
export function hasLease(
  { leases }: Pick<Snapshot, 'leases'>,
  { countedAs }: Pick<StoredWaiter, 'countedAs'>,
  now: number,
): boolean {
  return (leases[countedAs] ?? 0) > now;
}

/** Whether a place may have its turn: it has a lease, and has not outlived its longest wait and its replica. */
export function countsAt(
  snapshot: Pick<Snapshot, 'leases'>,
  place: Pick<StoredWaiter, 'countedAs' | 'ticket' | 'maxWaitMillis'>,
  now: number,
): boolean {
  const { countedAs, ticket, maxWaitMillis = Infinity } = place;
  const isOver = now - Math.floor(ticket / 1000) >= maxWaitMillis;
  const isGone = (snapshot.leases[countedAs] ?? 0) - keptMillisOf(countedAs) <= now;
  return hasLease(snapshot, place, now) && !(isOver && isGone);
}

/** The replica of an id under which Redis counts places. */
export function replicaOf(countedAs: string): string {
  return countedAs.split('+')[0]!;
}

/** By how many ms the places of an id outlive the replica. */
export function keptMillisOf(countedAs: string): number {
  return Number(countedAs.split('+')[1] ?? 0);
}

/** The ids under which Redis counts places of a replica. */
export function idsOf({ leases }: Pick<Snapshot, 'leases'>, replica: string): string[] {
  return Object.keys(leases).filter((id) => replicaOf(id) === replica);
}

/** @throws Violation where a key never expires */
export function readSnapshot(raw: RawSnapshot): Snapshot {
  if (raw.expiry.includes(NO_EXPIRY)) {
    throw new Violation('every key has an expiry', `expiries ${raw.expiry.join(' ')}`);
  }
  const fields = toRecord(list(raw.state));
  const queue = tryReadQueue(raw);
  const state = readStoredState(fields);
  const records = readRecords(toRecord(list(raw.records)));
  const lapses = readTimes(raw.lapses);
  const snapshot = {
    state,
    requests: new Map(list(raw.requests).map((id) => [id, 1])),
    // They may be left from a state that was lost.
    holds: state?.holds ? readHolds(records, lapses) : new Map(),
    lapses,
    ends: readTimes(raw.ends),
    records,
    past: new Set(list(raw.past)),
    limits: new Map(),
    recent: [],
    waiting: queue ? readWaiters(queue, records) : new Map(),
    lists: readLists(
      optionalFields(fields),
      toRecord(list(raw.heads)),
      toRecord(list(raw.stopped)),
    ),
    groups: readGroups(toRecord(list(raw.groups))),
    idleGroups: new Set(Object.keys(toRecord(list(raw.idle)))),
    leases: queue?.leases ?? {},
    isConsistent: queue !== undefined,
    keys: raw.expiry.filter((at) => at !== NOT_THERE).length,
  };
  return withTaken(snapshot, raw.took.map(readTaken));
}

/** A snapshot in which approvals take this. */
export function withTaken(snapshot: Snapshot, recent: Snapshot['recent']): Snapshot {
  const { algorithm = DEFAULT_ALGORITHM, further = [] } = snapshot.state ?? {};
  const limits = new Map<string, ReadonlyMap<string, number>>();
  for (const [i, name] of LIMIT_NAMES.entries()) {
    const limit = further.find((each) => each.name === name);
    const generations = generationsOf({ recent }, i + 1);
    const ids = limit && !limit.stored ? takenIn(generations) : hitsIn(generations);
    if (ids.size > 0) limits.set(name, ids);
  }
  const generations = generationsOf({ recent }, 0);
  if (algorithm.name !== 'fixed_window') {
    return { ...snapshot, requests: hitsIn(generations), limits, recent };
  }
  const others = snapshot.state?.hasHits ? takenIn(generations) : new Map<string, number>();
  const ids = [...snapshot.requests.keys()];
  const requests = new Map(ids.map((id) => [id, others.get(id) ?? 1]));
  return { ...snapshot, requests, limits, recent };
}

/**
 * The approvals in a limit that is no fixed window, by their ids, in two generations.
 * @param index 0 for the own limit, or the position in `LIMIT_NAMES`, from 1 on
 */
export function generationsOf(
  { recent }: Pick<Snapshot, 'recent'>,
  index: number,
): readonly ReadonlyMap<string, RecentId>[] {
  return recent.slice(2 * index, 2 * index + 2);
}

function hitsIn(generations: readonly ReadonlyMap<string, RecentId>[]): Map<string, number> {
  const all = generations.flatMap((ids) => [...ids]);
  return new Map(all.map(([id, { hits }]) => [id, hits]));
}

/** What approvals take of a limit with fixed windows, which has one generation. */
function takenIn([ids]: readonly ReadonlyMap<string, RecentId>[]): Map<string, number> {
  return new Map([...(ids ?? [])].map(([id, { mark }]) => [id, mark]));
}

function readTaken(hash: RawSnapshot['took'][number]): Map<string, RecentId> {
  return new Map(
    Object.entries(toRecord(list(hash))).map(([id, text]) => {
      const value = JSON.parse(text) as number | [mark: number, hits: number];
      const [mark, hits] = typeof value === 'number' ? [value, 1] : value;
      return [id, { mark, hits }];
    }),
  );
}

function readTimes(pairs: RawSnapshot['lapses']): ReadonlyMap<string, number> {
  return new Map(Object.entries(toRecord(list(pairs))).map(([id, at]) => [id, Number(at)]));
}

export function sentMessages(raw: RawSnapshot): readonly string[] {
  return list(raw.sent);
}

function tryReadQueue(raw: RawSnapshot): StoredQueue | undefined {
  try {
    return readQueue(list(raw.queue), toRecord(list(raw.replicas)), toRecord(list(raw.records)));
  } catch {
    return undefined;
  }
}

function readWaiters(
  { waiting }: StoredQueue,
  records: StoredRecords,
): ReadonlyMap<string, StoredWaiter> {
  const waiters = waiting.map(([waiter, ticket]) => {
    const [id = '', countedAs = ''] = waiter.split('@');
    const { hits, holdMillis, keepMillis, maxWaitMillis, list } = records.get(id)!;
    const kept = { keepMillis, maxWaitMillis };
    const place = { ticket, replica: replicaOf(countedAs), countedAs, ...kept };
    return [id, { ...place, hits, holdMillis, list }] as const;
  });
  return new Map(waiters.sort(([, a], [, b]) => a.ticket - b.ticket));
}

function readHolds(
  records: StoredRecords,
  lapses: ReadonlyMap<string, number>,
): ReadonlyMap<string, StoredHold> {
  const holds = new Map<string, StoredHold>();
  for (const [id, record] of records) {
    const lapsesAt = lapses.get(id);
    if (lapsesAt === undefined || !countsAsHeld(record)) continue;
    const { hits, took = hits, list } = record;
    const lane = list?.kind === 'lane' ? encodeURIComponent(list.name) : undefined;
    const length = { lapsesAt, millis: holdLengthOf(record) };
    holds.set(id, { ...length, hits: took, lane, listId: listIdOf(record) });
  }
  return holds;
}

function list(value: readonly string[] | Record<string, never>): readonly string[] {
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

function toRecord(pairs: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (let i = 0; i < pairs.length; i += 2) record[pairs[i]!] = pairs[i + 1]!;
  return record;
}
