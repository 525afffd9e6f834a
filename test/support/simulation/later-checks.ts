import { numberOf } from './model-ids.js';
import type { ScriptRun, WaiterRun } from './script-run.js';
import type { StoredRequest } from './stored-requests.js';

/** The newest check of each request with an id of its caller that a settle asks about, by that id. */
export function newestChecks({ waiters }: Pick<ScriptRun, 'waiters'>): Map<string, WaiterRun> {
  const newest = new Map<string, WaiterRun>();
  for (const waiter of waiters.values()) {
    const { id, owner } = waiter;
    if (owner === undefined) continue;
    const before = newest.get(id)?.owner;
    if (before === undefined || numberOf(before) < numberOf(owner)) newest.set(id, waiter);
  }
  return newest;
}

/**
 * Those of them that get the undecided requests of earlier checks of their replica: a call of an earlier check, or one that put
 * its place back, has come later than the take-over.
 * @param known the requests that Redis knows
 */
export function laterChecks(
  run: Pick<ScriptRun, 'waiters' | 'replica'>,
  known: ReadonlyMap<string, StoredRequest>,
): Map<string, WaiterRun> {
  const later = [...newestChecks(run)].filter(([id, { owner = '' }]) => {
    const record = known.get(id);
    if (record?.is !== 'waiting' && record?.is !== 'granted') return false;
    const isOfReplica = record.owner.startsWith(`${run.replica}#`);
    return isOfReplica && numberOf(record.owner) < numberOf(owner);
  });
  return new Map(later);
}

/** Requests that belong to later checks now. */
export function withLaterOwners(
  known: ReadonlyMap<string, StoredRequest>,
  later: ReadonlyMap<string, WaiterRun>,
): ReadonlyMap<string, StoredRequest> {
  const taken = [...later].map(([id, { owner = '', keepMillis }]) => {
    return [id, { ...known.get(id)!, owner, keepMillis }] as const;
  });
  return new Map([...known, ...taken]);
}
