import type { Snapshot } from './snapshot.js';

/** What Redis has of a request whose caller has chosen its id: docs/redis.md. */
export interface StoredRequest {
  readonly is: 'waiting' | 'approved' | 'released';
  readonly hits: number;
  /** Undefined if its approval is not held. */
  readonly holdMillis: number | undefined;
  /** The check that it belongs to, `<replica>#<number>`. */
  readonly owner: string;
}

/** By their ids: those that wait, and the outcomes of the present and the last three generations. */
export type NamedRequests = readonly ReadonlyMap<string, StoredRequest>[];

export const NOBODY_NAMED: NamedRequests = [];

/** @param hashes `records`, `outcomes` and its generations */
export function readNamed(hashes: readonly Readonly<Record<string, string>>[]): NamedRequests {
  return hashes.map(
    (hash) => new Map(Object.entries(hash).map(([id, text]) => [id, readRequest(text)])),
  );
}

function readRequest(text: string): StoredRequest {
  const [, outcome, hits, hold, owner = ''] =
    /^(?:(approved|released):)?(\d+):(\d+):(.*)$/.exec(text) ?? [];
  return {
    is: (outcome as StoredRequest['is'] | undefined) ?? 'waiting',
    hits: Number(hits),
    holdMillis: Number(hold) || undefined,
    owner,
  };
}

/** Of each known request what Redis goes by. The record of one that has no place any more says nothing. */
export function requestsKnown({
  named: [records = new Map<string, StoredRequest>(), ...outcomes],
  waiting,
}: Pick<Snapshot, 'named' | 'waiting'>): Map<string, StoredRequest> {
  const known = new Map(outcomes.toReversed().flatMap((each) => [...each]));
  for (const [id, record] of records) if (waiting.has(id)) known.set(id, record);
  return known;
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
    ending = (ending % (named.length - 2)) + 1;
    // The position of a generation follows those of the records and the present outcomes.
    kept[ending + 1] = kept[1]!;
    kept[1] = new Map();
  }
  return { ...snapshot, named: kept };
}
