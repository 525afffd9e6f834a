import { FIXED_WINDOW } from '../../../src/limiter/limits.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import { readEntry, readQueue, type StoredQueue } from '../stored-queue.js';
import { NO_LISTS, readLists, type StoredLists } from './stored-lists.js';
import { NOBODY_NAMED, type NamedRequests, readNamed } from './stored-requests.js';
import { optionalFields, readStoredState, type StoredState } from '../stored-state.js';
import { LIMIT_NAMES } from './shape.js';
import { Violation } from './violation.js';

/** What the snapshot script replies. */
export interface RawSnapshot {
  /** Names and values by turns; empty objects are how cjson writes empty lists. */
  readonly state: readonly string[] | Record<string, never>;
  readonly requests: readonly string[] | Record<string, never>;
  readonly hits: readonly string[] | Record<string, never>;
  readonly holds: readonly string[] | Record<string, never>;
  readonly queue: readonly string[] | Record<string, never>;
  readonly waiting: readonly string[] | Record<string, never>;
  readonly replicas: readonly string[] | Record<string, never>;
  /** Of each further limit, in the order of `LIMIT_NAMES`. */
  readonly limits: readonly (readonly string[] | Record<string, never>)[];
  /** The ids of limits that are no fixed windows: two generations of the own one, and of each of `LIMIT_NAMES`. */
  readonly recent: readonly (readonly string[] | Record<string, never>)[];
  /** The requests whose callers have chosen their ids: `records`, and the generations of `outcomes`. */
  readonly named: readonly (readonly string[] | Record<string, never>)[];
  /** Of lanes and of groups: heads and their order keys by turns. */
  readonly heads: readonly string[] | Record<string, never>;
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
  /** By the name of each further limit that has any: what approvals take of it, by their ids. */
  readonly limits: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** The approvals in limits that are no fixed windows, by their ids: as `RawSnapshot` has them. */
  readonly recent: readonly ReadonlyMap<string, RecentId>[];
  /** By their ids, in the order of their tickets. */
  readonly waiting: ReadonlyMap<string, StoredWaiter>;
  readonly lists: StoredLists;
  readonly leases: Readonly<Record<string, number>>;
  readonly named: NamedRequests;
  /** Whether the three keys of the queue say the same. */
  readonly isConsistent: boolean;
  readonly keys: number;
}

export const NOTHING_STORED: Snapshot = {
  state: undefined,
  requests: new Map(),
  holds: new Map(),
  limits: new Map(),
  recent: [],
  waiting: new Map(),
  lists: NO_LISTS,
  leases: {},
  named: NOBODY_NAMED,
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
  const { expires, recoveryUntil, pausedUntil, holds: { firstLapse = 0 } = {} } = state;
  if (Math.max(expires, recoveryUntil, pausedUntil, firstLapse) > now) return false;
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
  const hits = toRecord(list(raw.hits));
  const state = readStoredState(fields);
  const named = readNamed(raw.named.map((hash) => toRecord(list(hash))));
  const snapshot = {
    state,
    requests: new Map(list(raw.requests).map((id) => [id, Number(hits[id] ?? 1)])),
    // A hash may be left from a state that was lost.
    holds: state?.holds ? readHolds(toRecord(list(raw.holds))) : new Map(),
    limits: readLimits(raw.limits),
    recent: [],
    waiting: queue ? readWaiters(list(raw.queue), queue, named[0]!) : new Map(),
    lists: readLists(optionalFields(fields), toRecord(list(raw.heads))),
    leases: queue?.leases ?? {},
    named,
    isConsistent: queue !== undefined,
    keys: raw.expiry.filter((at) => at !== NOT_THERE).length,
  };
  return withRecent(snapshot, raw.recent.map(readRecent));
}

/** A snapshot with these approvals in limits that are no fixed windows. */
export function withRecent(
  { requests, limits, ...snapshot }: Snapshot,
  recent: Snapshot['recent'],
): Snapshot {
  const { algorithm = FIXED_WINDOW, further = [] } = snapshot.state ?? {};
  const ofAll = new Map(limits);
  for (const [i, name] of LIMIT_NAMES.entries()) {
    const limit = further.find((each) => each.name === name);
    // Of an earlier key, whose limit was of another kind, they stay until they expire.
    if (limit && !limit.stored) continue;
    const ids = hitsIn(generationsOf({ recent }, i + 1));
    if (ids.size > 0) ofAll.set(name, ids);
  }
  const isFixed = algorithm.name === 'fixed_window';
  const ofOwn = isFixed ? requests : hitsIn(generationsOf({ recent }, 0));
  return { ...snapshot, requests: ofOwn, limits: ofAll, recent };
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

function readRecent(hash: RawSnapshot['recent'][number]): Map<string, RecentId> {
  return new Map(
    Object.entries(toRecord(list(hash))).map(([id, text]) => {
      const [mark, hits = 1] = text.split('*').map(Number);
      return [id, { mark: mark!, hits }];
    }),
  );
}

export function sentMessages(raw: RawSnapshot): readonly string[] {
  return list(raw.sent);
}

function tryReadQueue(raw: RawSnapshot): StoredQueue | undefined {
  try {
    const [waiting, replicas, records] = [raw.waiting, raw.replicas, raw.named[0] ?? {}].map(
      (hash) => toRecord(list(hash)),
    );
    return readQueue(list(raw.queue), waiting!, replicas!, records);
  } catch {
    return undefined;
  }
}

function readWaiters(
  entries: readonly string[],
  { waiting }: StoredQueue,
  records: NamedRequests[number],
): ReadonlyMap<string, StoredWaiter> {
  const read = entries.map(readEntry);
  const waiters = waiting.map(([waiter, ticket]) => {
    const [id = '', countedAs = ''] = waiter.split('@');
    const { hits, holdMillis, list } = read.find((entry) => Number(entry.ticket) === ticket)!;
    const { keepMillis, maxWaitMillis } = records.get(id) ?? {};
    const kept = { keepMillis, maxWaitMillis };
    const place = { ticket, replica: replicaOf(countedAs), countedAs, ...kept };
    return [id, { ...place, hits, holdMillis, list }] as const;
  });
  return new Map(waiters.sort(([, a], [, b]) => a.ticket - b.ticket));
}

function readHolds(texts: Readonly<Record<string, string>>): ReadonlyMap<string, StoredHold> {
  return new Map(
    Object.entries(texts).map(([id, text]) => {
      const [, lapsesAt, millis, hits = 1, lane] =
        /^(\d+):(\d+)(?:\*(\d+))?(?:\/lane:(.*))?$/.exec(text) ?? [];
      const hold = { lapsesAt: Number(lapsesAt), millis: Number(millis), hits: Number(hits), lane };
      return [id, hold];
    }),
  );
}

function readLimits(hashes: RawSnapshot['limits']): Map<string, ReadonlyMap<string, number>> {
  const limits = new Map<string, ReadonlyMap<string, number>>();
  for (const [i, hash] of hashes.entries()) {
    const taken = Object.entries(toRecord(list(hash))).map(
      ([id, text]) => [id, Number(text)] as const,
    );
    if (taken.length > 0) limits.set(LIMIT_NAMES[i]!, new Map(taken));
  }
  return limits;
}

function list(value: readonly string[] | Record<string, never>): readonly string[] {
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

function toRecord(pairs: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (let i = 0; i < pairs.length; i += 2) record[pairs[i]!] = pairs[i + 1]!;
  return record;
}
