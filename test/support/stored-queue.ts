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
  readonly hits: number;
  /** Undefined if its approval will not be held. */
  readonly holdMillis: number | undefined;
  /** The list, without the most that may wait in it; undefined without a lane or a group. */
  readonly list: QueueList | undefined;
  /** What it counted as when it joined. */
  readonly joinedOn: string;
}

/**
 * The contents of a queue, with one list or with several.
 * @throws Error if the three keys contradict each other
 */
export async function storedQueue(
  client: Redis,
  {
    queue,
    waiting,
    replicas,
    records,
  }: Pick<KeyNames, 'queue' | 'waiting' | 'replicas' | 'records'>,
): Promise<StoredQueue> {
  // One list is a list of Redis, and several are a sorted set: one of both commands fails.
  const call = client.multi().lrange(queue, 0, -1).zrange(queue, '0', '-1');
  const reply = await call.hgetall(waiting).hgetall(replicas).hgetall(records).exec();
  const [[, inOneList], [, inSeveral], [, tickets], [, leases], [, owners]] = reply as [
    [Error | null, string[] | undefined],
    [Error | null, string[] | undefined],
    [Error | null, Record<string, string>],
    [Error | null, Record<string, string>],
    [Error | null, Record<string, string>],
  ];
  return readQueue(inOneList ?? inSeveral!, tickets, leases, owners);
}

/**
 * @param entries of the list, or of all lists
 * @param tickets by request id, each with the list after it if it is a lane or a group; `leases` by replica id: the two hashes
 * @param records by request id, of the requests whose ids their callers have chosen
 * @throws Error if the three keys contradict each other
 */
export function readQueue(
  entries: readonly string[],
  tickets: Readonly<Record<string, string>>,
  leases: Readonly<Record<string, string>>,
  records: Readonly<Record<string, string>> = {},
): StoredQueue {
  const waiters: [waiter: string, ticket: number][] = [];
  const places: Record<string, number> = {};
  // A place that was put back may still have an entry from before.
  const seen = new Set<string>();
  for (const entry of entries) {
    const { ticket, requestId, list, joinedOn } = readEntry(entry);
    const place = list ? `${ticket}:${listId(list)}` : ticket;
    if (tickets[requestId] !== place || seen.has(ticket)) continue;
    seen.add(ticket);
    const replica = replicaOfOwner(records[requestId]) ?? joinedOn;
    waiters.push([`${requestId}@${replica}`, Number(ticket)]);
    places[replica] = (places[replica] ?? 0) + 1;
  }
  const counted = Object.entries(leases).map(([id, lease]) => [id, Number(lease.split(':')[1])]);
  if (
    waiters.length !== Object.keys(tickets).length ||
    !isDeepStrictEqual(Object.fromEntries(counted), places)
  ) {
    throw new Error(
      `the queue contradicts itself: ${JSON.stringify({ entries, tickets, leases })}`,
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
  const [, id, ticket = '', requestId = '', hits = 1, hold, parameter, joinedOn = ''] =
    /^(?:([a-z]+:\S*) )?(\d+):([^@*~^]*)(?:\*(\d+))?(?:~(\d+))?(?:\^(\d+))?@(.*)$/.exec(text) ?? [];
  return {
    ticket,
    requestId,
    hits: Number(hits),
    holdMillis: hold === undefined ? undefined : Number(hold),
    list: parameter === undefined ? undefined : listOf(id ?? '', Number(parameter)),
    joinedOn,
  };
}

/** The id of a lane or a group: `<kind>:<name>`. */
export function listId({ kind, name }: QueueList): string {
  return `${kind}:${encodeURIComponent(name)}`;
}

/** @param parameter its head start in milliseconds, or its weight */
export function listOf(id: string, parameter: number, maxRequests?: number): QueueList {
  const { kind, name } = decodeListId(id);
  return kind === 'lane'
    ? { kind, name, headStartMillis: parameter }
    : { kind: 'group', name, weight: parameter, maxRequests };
}

/** As what the place counts with a record `<hits>:<hold>[+<ms>]:<replica id>#<number>`. */
function replicaOfOwner(record: string | undefined): string | undefined {
  const [, keep, replicaId] = /^\d+:\d+(?:\+(\d+))?(?:\^\d+)?:(.*)#\d+$/.exec(record ?? '') ?? [];
  return keep === undefined ? replicaId : `${replicaId}+${roundUp(Number(keep))}`;
}

/** To 1, 2 or 5 times a power of ten. */
function roundUp(millis: number): number {
  const power = 10 ** Math.floor(Math.log10(millis));
  return [1, 2, 5, 10].map((factor) => factor * power).find((rounded) => rounded >= millis)!;
}
