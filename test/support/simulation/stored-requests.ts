import { readRecord, type StoredRecord } from '../stored-queue.js';
import { windowEnd } from '../stored-state.js';
import { type Snapshot, Violation } from './snapshot.js';
import { keptList } from './stored-lists.js';

/** What Redis has of a request whose caller has chosen its id: docs/redis-names.md. */
export interface StoredRequest {
  /** `granted`: its approval is unclaimed. `approved` also if it is held, or its hold has lapsed. */
  readonly is: 'waiting' | 'granted' | 'approved' | 'released';
  readonly hits: number;
  /** Undefined if its approval is not held. */
  readonly holdMillis: number | undefined;
  /** For how long its place is kept for its caller; undefined if it ends with the check. */
  readonly keepMillis: number | undefined;
  /** How long it waits at most; undefined for one that has no such bound, or waits no more. */
  readonly maxWaitMillis: number | undefined;
  /** The check that it belongs to, `<replica>#<number>`. */
  readonly owner: string;
}

/** The records of all requests, by their ids. */
export type StoredRecords = ReadonlyMap<string, StoredRecord>;

const STATES: Readonly<Record<StoredRecord['state'], StoredRequest['is']>> = {
  waiting: 'waiting',
  unclaimed: 'granted',
  held: 'approved',
  approved: 'approved',
  released: 'released',
  lapsed: 'approved',
};

export function readRecords(texts: Readonly<Record<string, string>>): StoredRecords {
  return new Map(Object.entries(texts).map(([id, text]) => [id, withKeptList(readRecord(text))]));
}

function withKeptList(record: StoredRecord): StoredRecord {
  const { list } = record;
  return list ? { ...record, list: keptList(list) } : record;
}

/** Whether its approval counts as held. */
export function countsAsHeld({ state }: Pick<StoredRecord, 'state'>): boolean {
  return state === 'held' || state === 'unclaimed';
}

/** How long an approval that counts as held does so without another call. */
export function holdLengthOf(record: StoredRecord): number {
  const { state, keepMillis, renewedMillis, holdMillis } = record;
  return (state === 'unclaimed' ? keepMillis : (renewedMillis ?? holdMillis))!;
}

/** Whether it is remembered since its caller has chosen its id. */
function isRemembered({ state }: StoredRecord): boolean {
  return state === 'approved' || state === 'released' || state === 'lapsed';
}

/**
 * Of each request whose caller has chosen the id, what Redis goes by. The record of one that has no place any more says nothing,
 * nor does one of a hold that is left from a state that was lost.
 */
export function requestsKnown({
  records,
  waiting,
  state,
}: Pick<Snapshot, 'records' | 'waiting' | 'state'>): Map<string, StoredRequest> {
  const known = new Map<string, StoredRequest>();
  for (const [id, record] of records) {
    const isLeft = state !== undefined && state.holds === undefined && countsAsHeld(record);
    const hasLeft = record.state === 'waiting' && !waiting.has(id);
    if (record.owner === undefined || isLeft || hasLeft) continue;
    known.set(id, asRequest(record, record.owner));
  }
  return known;
}

function asRequest(record: StoredRecord, owner: string): StoredRequest {
  const { hits, holdMillis, keepMillis, maxWaitMillis } = record;
  return { is: STATES[record.state], hits, holdMillis, keepMillis, maxWaitMillis, owner };
}

/** The requests whose approvals are kept for their callers. */
export function grantedIn(
  snapshot: Pick<Snapshot, 'records' | 'waiting' | 'state'>,
): ReadonlyMap<string, StoredRequest> {
  return new Map([...requestsKnown(snapshot)].filter(([, { is }]) => is === 'granted'));
}

/**
 * A snapshot without the requests that a call forgets before it decides anything, which goes on with this key: those that have
 * been remembered for long enough, if it begins a window.
 * @param isNeeded whether it is remembered for longer
 */
export function withoutEnded(
  snapshot: Snapshot,
  now: number,
  isNeeded: (id: string) => boolean,
): Snapshot {
  const { records, ends, state } = snapshot;
  if (!state || now < windowEnd(state)) return snapshot;
  const ended = [...ends].filter(([id, end]) => {
    const record = records.get(id);
    return end <= now && record !== undefined && isRemembered(record) && !isNeeded(id);
  });
  if (ended.length === 0) return snapshot;
  const kept = new Map(records);
  for (const [id] of ended) kept.delete(id);
  return { ...snapshot, records: kept };
}

/** Each record has what ends it: a place in the queue, or a lapse. And no lapse is of another one. */
export function recordsFault({ records, waiting, lapses, state }: Snapshot): Violation | undefined {
  for (const [id, record] of records) {
    if (record.state === 'waiting' && !waiting.has(id)) {
      return new Violation('a record of a waiter has its place', id);
    }
    if (countsAsHeld(record) && state?.holds && !lapses.has(id)) {
      return new Violation('what is held lapses', id);
    }
  }
  const other = [...lapses.keys()].find((id) => {
    const record = records.get(id);
    return !record || !countsAsHeld(record);
  });
  if (other === undefined || !state?.holds) return undefined;
  return new Violation('what lapses is held', other);
}

/** The memory of each request that is remembered ends, and the state tells until when there is any. */
export function memoryFault({ records, ends, state }: Snapshot): Violation | undefined {
  for (const [id, record] of records) {
    if (!isRemembered(record)) continue;
    const end = ends.get(id);
    if (end === undefined) return new Violation('what is remembered is forgotten some time', id);
    if (end > (state?.ends ?? 0)) {
      return new Violation('the state says until when requests are remembered', id);
    }
  }
  return undefined;
}
