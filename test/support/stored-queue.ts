import { isDeepStrictEqual } from 'node:util';

import type { Redis } from 'ioredis';

import type { QueueList } from '../../src/limiter/queue-order.js';
import { decodeListId } from '../../src/redis/scripts/requests-codec.js';
import type { KeyNames } from '../../src/redis/shared/key-names.js';

/** The contents of the three keys of a queue. */
export interface StoredQueue {
  /** `<request id>@<replica id>` of the waiters, in the order of their list, one list after the other, with their tickets. */
  readonly waiting: readonly (readonly [waiter: string, ticket: number])[];
  /** The length of the list, or of all lists, including withdrawn entries. */
  readonly entries: number;
  /** Until when the lease of each replica runs, in milliseconds since 1970. */
  readonly leases: Readonly<Record<string, number>>;
}

/** An entry of a queue: lua/queue/entries.lua. */
export interface QueueEntry {
  /** As a text. */
  readonly ticket: string;
  readonly requestId: string;
  /** The id of its list; undefined in a queue with one list. */
  readonly list: string | undefined;
  /** What it counted as when it joined. */
  readonly joinedOn: string;
}

/** A record of a request: lua/lib/requests.lua. */
export interface StoredRecord {
  readonly state: 'waiting' | 'unclaimed' | 'held' | 'approved' | 'released' | 'lapsed';
  /** Of a waiter, as a text. */
  readonly ticket?: string;
  readonly hits: number;
  /** How many hits it takes since they were corrected. */
  readonly took?: number;
  readonly holdMillis?: number;
  /** The length of its hold since it was renewed with another one. */
  readonly renewedMillis?: number;
  readonly holder?: string;
  /** Since when its holder holds it, in milliseconds since 1970. */
  readonly since?: number;
  readonly keepMillis?: number;
  readonly maxWaitMillis?: number;
  readonly list?: QueueList;
  readonly owner?: string;
}

/** @param text a value of the hash of records */
export function readRecord(text: string): StoredRecord {
  const stored = JSON.parse(text) as Partial<StoredRecord>;
  const { list } = stored;
  return {
    state: 'held',
    hits: 1,
    ...stored,
    ...(list && { list: { ...list, name: decodeURIComponent(list.name) } }),
  };
}

/**
 * The contents of a queue, with one list or with several.
 * @throws Error if the three keys contradict each other
 */
export async function storedQueue(
  client: Redis,
  { queue, replicas, records }: Pick<KeyNames, 'queue' | 'replicas' | 'records'>,
): Promise<StoredQueue> {
  // One list is a list of Redis, and several are a sorted set: one of both commands fails.
  const call = client.multi().lrange(queue, 0, -1).zrange(queue, '0', '-1');
  const reply = await call.hgetall(replicas).hgetall(records).exec();
  const [[, inOneList], [, inSeveral], [, leases], [, requests]] = reply as [
    [Error | null, string[] | undefined],
    [Error | null, string[] | undefined],
    [Error | null, Record<string, string>],
    [Error | null, Record<string, string>],
  ];
  return readQueue(inOneList ?? inSeveral!, leases, requests);
}

/**
 * @param entries of the list, or of all lists
 * @param leases by replica id
 * @param records by request id
 * @throws Error if the three keys contradict each other
 */
export function readQueue(
  entries: readonly string[],
  leases: Readonly<Record<string, string>>,
  records: Readonly<Record<string, string>>,
): StoredQueue {
  const waiters: [waiter: string, ticket: number][] = [];
  const places: Record<string, number> = {};
  const waiting = new Map(
    Object.entries(records)
      .map(([id, text]) => [id, readRecord(text)] as const)
      .filter(([, { state }]) => state === 'waiting'),
  );
  // A place that was put back may still have an entry from before.
  const seen = new Set<string>();
  for (const entry of entries) {
    const { ticket, requestId, list = 'fifo:', joinedOn } = readEntry(entry);
    const record = waiting.get(requestId);
    const isThere =
      record !== undefined &&
      ticketInList(record) === Number(ticket) &&
      (record.list ? listId(record.list) : 'fifo:') === list;
    const start = `${ticket}:${requestId}`;
    if (!isThere || seen.has(start)) continue;
    seen.add(start);
    const replica = replicaOf(record) ?? joinedOn;
    waiters.push([`${requestId}@${replica}`, Number(record.ticket)]);
    places[replica] = (places[replica] ?? 0) + 1;
  }
  const counted = Object.entries(leases).map(([id, lease]) => [id, Number(lease.split(':')[1])]);
  if (waiters.length !== waiting.size || !isDeepStrictEqual(Object.fromEntries(counted), places)) {
    throw new Error(
      `the queue contradicts itself: ${JSON.stringify({ entries, records, leases })}`,
    );
  }
  return {
    waiting: waiters,
    entries: entries.length,
    leases: Object.fromEntries(
      Object.entries(leases).map(([id, lease]) => [id, Number(lease.split(':')[0])]),
    ),
  };
}

export function readEntry(text: string): QueueEntry {
  const [, list, ticket = '', requestId = '', joinedOn = ''] =
    /^(?:([a-z]+:\S*) )?(\d+):([^@]*)@(.*)$/.exec(text) ?? [];
  return { ticket, requestId, list, joinedOn };
}

/** The id of a lane or a group: `<kind>:<name>`. */
export function listId({ kind, name }: QueueList): string {
  return `${kind}:${encodeURIComponent(name)}`;
}

/**
 * @param parameter its head start in milliseconds, or its weight
 * @param headStartMillis of the lane inside a group
 */
export function listOf(
  id: string,
  parameter: number,
  maxRequests?: number,
  headStartMillis?: number,
): QueueList {
  const { kind, name } = decodeListId(id);
  return kind === 'lane'
    ? { kind, name, headStartMillis: parameter }
    : { kind: 'group', name, weight: parameter, maxRequests, headStartMillis };
}

/** The ticket of a waiter less the head start of its lane inside a group: the waiters of a list are in this order. */
export function ticketInList({
  ticket,
  list,
}: {
  readonly ticket?: string | number;
  readonly list?: QueueList | undefined;
}): number {
  const { headStartMillis = 0 } = list?.kind === 'group' ? list : {};
  return Number(ticket) - 1000 * headStartMillis;
}

/** As what the place of a waiter counts whose caller has chosen its id; undefined without an owner. */
function replicaOf({ owner, keepMillis }: StoredRecord): string | undefined {
  const [, replicaId] = /^(.*)#\d+$/.exec(owner ?? '') ?? [];
  return keepMillis === undefined ? replicaId : `${replicaId}+${roundUp(keepMillis)}`;
}

/** To 1, 2 or 5 times a power of ten. */
function roundUp(millis: number): number {
  const power = 10 ** Math.floor(Math.log10(millis));
  return [1, 2, 5, 10].map((factor) => factor * power).find((rounded) => rounded >= millis)!;
}
