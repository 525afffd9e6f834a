import { UnavailableError } from '../../../limiter/errors.js';
import type { Holding, InstanceState, Operator } from '../../../limiter/limiter.js';
import { type ForEachLimit, forEachLimit, type LimitInForce } from '../../../limiter/limits.js';
import type { DeniedKey } from '../../../service/deciding/recent-denials.js';
import { inSlices } from '../../../service/deciding/slices.js';
import type { ConnectedRequest } from '../../../service/request-context.js';
import type { Service } from '../../../service/service.js';
import { type KeyState, needOf, statesOf, Top } from './key-survey.js';
import type { ListQuery } from './ui-parameters.js';

/** The most held hits of a key whose holders are named in a list. Of more, only the key's details name some. */
const MOST_HITS = 100;
const SHOWN = 3;

/** A key that is listed, and its current run of denials. */
interface ListedKey extends InstanceState {
  readonly recentDenials: DeniedKey | undefined;
}

/** A key in a list of the page. */
export interface KeyRow extends ListedKey {
  /** In the order in which they need a person. */
  readonly states: readonly KeyState[];
  /** False if the store could not be asked: the rest of the row is as it was known last. */
  readonly isCurrent: boolean;
  /** The held approvals with their holders. Undefined if nothing is held, or too much to name it in a list. */
  readonly holdings?:
    | undefined
    | {
        /** Those that are held for longest; without a holder nobody knows how long. */
        readonly shown: readonly Holding[];
        readonly count: number;
      };
}

/**
 * Chooses the keys that need a person most. A key that is newer than the survey is among them if it was denied. Patterns are
 * matched with each key, so that this is done in slices.
 * @param states the keys as they were surveyed
 * @param unsurveyed a key that is not among them
 */
export async function chooseRows(
  { access, policyOf, slices }: Service,
  context: ConnectedRequest,
  states: ReadonlyMap<string, InstanceState>,
  unsurveyed: InstanceState | undefined,
  recentDenials: readonly DeniedKey[],
  { limit, search, state: wanted }: ListQuery,
) {
  const deniedByKey = new Map(recentDenials.map((one) => [one.key, one]));
  const text = search.toLowerCase();
  const top = new Top<InstanceState>(limit);
  const counts = { paused: 0, denied: 0, queue_full: 0, waiting: 0, held: 0, used: 0 };
  let keys = 0;
  let matching = 0;
  // Rows are made only of keys that are chosen: there may be many thousands of keys.
  const offer = (state: InstanceState): void => {
    if (!access.mayUse(state.key, context)) return;
    keys += 1;
    if (!state.key.toLowerCase().includes(text)) return;
    const run = deniedByKey.get(state.key);
    const itsStates = statesOf(state, run);
    for (const name of itsStates) counts[name] += 1;
    if (wanted && !itsStates.includes(wanted)) return;
    matching += 1;
    top.offer(state, needOf(state, run));
  };
  await inSlices(states.values(), slices, context, offer);
  if (unsurveyed) offer(unsurveyed);
  await inSlices(recentDenials, slices, context, (one) => {
    if (states.has(one.key) || unsurveyed?.key === one.key) return;
    offer(idleState(one.key, policyOf(one.key)));
  });
  const rows = top.items.map((item) => ({ ...item, recentDenials: deniedByKey.get(item.key) }));
  return {
    rows,
    /** How many keys the caller may see. */
    keys,
    /** How many of these contain the text, by state. */
    counts,
    /** How many of these are in the state. */
    matching,
  };
}

/** The state of a key in which nothing counts. @param of the limits of the key, by its rules or as a row has shown them */
function idleState(
  key: string,
  of: Pick<InstanceState, 'maxRequestsInQueue'> & { readonly limits: ForEachLimit<LimitInForce> },
): InstanceState {
  const idle = forEachLimit(of.limits, (limit) => ({ ...limit, used: 0, millisToWindowEnd: 0 }));
  const nothing = { held: 0, denied: 0, waiting: 0, pausedMillis: 0 };
  return { key, limits: idle, maxRequestsInQueue: of.maxRequestsInQueue, ...nothing };
}

/**
 * The rows as of now. The row of a key that no longer exists is left out, unless the key was denied. If the store is
 * down, a row stays as it was.
 * @param onRead is told what the store knows of each key; undefined if the key does not exist
 */
export async function refreshRows(
  rows: readonly ListedKey[],
  store: Operator<'inspect' | 'holdings'>,
  onRead: (key: string, state: InstanceState | undefined) => void,
): Promise<KeyRow[]> {
  const fresh = await Promise.all(
    rows.map(async (row): Promise<KeyRow[]> => {
      const { key, recentDenials: run } = row;
      try {
        const state = await store.ask('inspect', { key });
        onRead(key, state);
        if (!state && !run) return [];
        const now = state ?? idleState(key, row);
        const holdings = await holdingsShown(now, store);
        return [
          { ...now, recentDenials: run, states: statesOf(now, run), isCurrent: true, holdings },
        ];
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        return [{ ...row, states: statesOf(row, run), isCurrent: false }];
      }
    }),
  );
  const need = (row: KeyRow): number => needOf(row, row.recentDenials);
  return fresh.flat().toSorted((a, b) => need(b) - need(a));
}

/**
 * @returns undefined if nothing is held, or too much
 * @throws UnavailableError if the store is down
 */
async function holdingsShown(
  { key, held }: Pick<InstanceState, 'key' | 'held'>,
  store: Operator<'holdings'>,
): Promise<KeyRow['holdings']> {
  if (held === 0 || held > MOST_HITS) return undefined;
  const all = await store.ask('holdings', { key });
  const longestFirst = all.toSorted((a, b) => (b.heldMillis ?? -1) - (a.heldMillis ?? -1));
  return { shown: longestFirst.slice(0, SHOWN), count: all.length };
}
