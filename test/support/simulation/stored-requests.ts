import type { Snapshot } from './snapshot.js';

/** What Redis has of a request whose caller has chosen its id: docs/redis.md. */
export interface StoredRequest {
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

/**
 * By their ids: those that wait, those whose approvals are kept for their callers, and the outcomes of the present and the
 * last three generations.
 */
export type NamedRequests = readonly ReadonlyMap<string, StoredRequest>[];

export const NOBODY_NAMED: NamedRequests = [];

/** The indices of the hashes. */
const [RECORDS, GRANTED, OUTCOMES] = [0, 1, 2];

/** @param hashes `records`, `granted`, `outcomes` and its generations */
export function readNamed(hashes: readonly Readonly<Record<string, string>>[]): NamedRequests {
  return hashes.map(
    (hash) => new Map(Object.entries(hash).map(([id, text]) => [id, readRequest(text)])),
  );
}

function readRequest(text: string): StoredRequest {
  const [, outcome, hits, hold, keep, maxWait, owner = ''] =
    /^(?:(granted|approved|released):)?(\d+):(\d+)(?:\+(\d+))?(?:\^(\d+))?:(.*)$/.exec(text) ?? [];
  return {
    is: (outcome as StoredRequest['is'] | undefined) ?? 'waiting',
    hits: Number(hits),
    holdMillis: Number(hold) || undefined,
    keepMillis: keep === undefined ? undefined : Number(keep),
    maxWaitMillis: maxWait === undefined ? undefined : Number(maxWait),
    owner,
  };
}

/** Of each known request what Redis goes by. The record of one that has no place any more says nothing. */
export function requestsKnown({
  named,
  waiting,
}: Pick<Snapshot, 'named' | 'waiting'>): Map<string, StoredRequest> {
  const known = new Map(
    named
      .slice(GRANTED)
      .toReversed()
      .flatMap((each) => [...each]),
  );
  for (const [id, record] of named[RECORDS] ?? []) if (waiting.has(id)) known.set(id, record);
  return known;
}

/** The requests whose approvals are kept for their callers. */
export function grantedIn({ named }: Pick<Snapshot, 'named'>): ReadonlyMap<string, StoredRequest> {
  return named[GRANTED] ?? new Map<string, StoredRequest>();
}

/**
 * A snapshot without the outcomes that a call forgets before it decides anything: generations that end while it opens the
 * key.
 * @param turn the generation that has begun last by the end of the call
 */
export function withoutEnded(snapshot: Snapshot, turn: number): Snapshot {
  const { named, state } = snapshot;
  if (!state || named.length === 0) return snapshot;
  const kept = [...named];
  for (let ending = state.turn; ending !== turn;) {
    ending = (ending % (named.length - OUTCOMES - 1)) + 1;
    // The generations follow the present outcomes.
    kept[OUTCOMES + ending] = kept[OUTCOMES]!;
    kept[OUTCOMES] = new Map();
  }
  return { ...snapshot, named: kept };
}
