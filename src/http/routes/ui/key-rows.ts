import { UnavailableError } from '../../../limiter/errors.js';
import type { Holding, InstanceState, Operator, LimitsOf } from '../../../limiter/limiter.js';
import { type ForEachLimit, forEachLimit, type LimitInForce } from '../../../limiter/limits.js';
import type { DeniedKey } from '../../../service/deciding/recent-denials.js';
import { inSlices, type Slices, type SliceTaker } from '../../../service/deciding/slices.js';
import { type KeyState, needOf, statesOf, Top } from './key-survey.js';
import type { ListQuery } from './ui-parameters.js';

/** The most held hits of a key whose holders are named in a list. Of more, only the key's details name some. */
const MOST_HITS = 100;
const SHOWN = 3;

/** A key that is listed, and its current run of denials. */
interface ListedKey extends InstanceState {
  readonly recentDenials: DeniedKey | undefined;
}

/** The held approvals of a key in a list. */
interface ShownHoldings {
  /** Those that are held for longest; without a holder nobody knows how long. */
  readonly shown: readonly Holding[];
  readonly count: number;
}

/** A key in a list of the page. */
export interface KeyRow extends ListedKey {
  /** In the order in which they need a person. */
  readonly states: readonly KeyState[];
  /** False if the store could not be asked: the rest of the row is as it was known last. */
  readonly isCurrent: boolean;
  /** The held approvals with their holders. Undefined if nothing is held, or too much to name it in a list. */
  readonly holdings?: ShownHoldings | undefined;
}

/** The data of rows: the keys as they were surveyed, and the keys that were denied since. */
export interface RowSources {
  readonly states: ReadonlyMap<string, InstanceState>;
  /** A key that is not among them. */
  readonly unsurveyed?: InstanceState | undefined;
  readonly recentDenials: readonly DeniedKey[];
  readonly limitsOf: LimitsOf;
  readonly maySee: (key: string) => boolean;
  readonly slices: Pick<Slices, 'next'>;
  readonly taker: SliceTaker;
}

export interface ChosenRows {
  readonly rows: readonly ListedKey[];
  /** How many keys the caller may see. */
  readonly keys: number;
  /** How many of these contain the text, by state. */
  readonly counts: Readonly<Record<KeyState, number>>;
  /** How many of these are in the state. */
  readonly matching: number;
}

/**
 * Chooses the keys that need a person most. A key that is newer than the survey is among them if it was denied. Patterns are
 * matched with each key, so that this is done in slices.
 */
export async function chooseRows(
  sources: RowSources,
  { limit, search, state: wanted }: ListQuery,
): Promise<ChosenRows> {
  const { states, unsurveyed, recentDenials, limitsOf, maySee, slices, taker } = sources;
  const deniedByKey = new Map(recentDenials.map((one) => [one.key, one]));
  const text = search.toLowerCase();
  const top = new Top<InstanceState>(limit);
  const counts = { paused: 0, denied: 0, queue_full: 0, waiting: 0, held: 0, used: 0 };
  let keys = 0;
  let matching = 0;
  // Rows are made only of keys that are chosen: there may be many thousands of keys.
  const offer = (state: InstanceState): void => {
    if (!maySee(state.key)) return;
    keys += 1;
    if (!state.key.toLowerCase().includes(text)) return;
    const run = deniedByKey.get(state.key);
    const itsStates = statesOf(state, run);
    for (const name of itsStates) counts[name] += 1;
    if (wanted && !itsStates.includes(wanted)) return;
    matching += 1;
    top.offer(state, needOf(state, run));
  };
  await inSlices(states.values(), slices, taker, offer);
  if (unsurveyed) offer(unsurveyed);
  await inSlices(recentDenials, slices, taker, (one) => {
    if (states.has(one.key) || unsurveyed?.key === one.key) return;
    offer(idleState(one.key, limitsOf(one.key)));
  });
  const rows = top.items.map((item) => ({ ...item, recentDenials: deniedByKey.get(item.key) }));
  return { rows, keys, counts, matching };
}

/** The limits of a key, by its rules or as a row has shown them. */
interface IdleKey {
  readonly limits: ForEachLimit<LimitInForce>;
  readonly maxRequestsInQueue: number;
}

/** The state of a key in which nothing counts. */
function idleState(key: string, { limits, maxRequestsInQueue }: IdleKey): InstanceState {
  const idle = forEachLimit(limits, (limit) => ({ ...limit, used: 0, millisToWindowEnd: 0 }));
  const nothing = { held: 0, denied: 0, waiting: 0, pausedMillis: 0 };
  return { key, limits: idle, maxRequestsInQueue, ...nothing };
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
  const top = new Top<KeyRow>(rows.length);
  for (const row of fresh.flat()) top.offer(row, needOf(row, row.recentDenials));
  return top.items;
}

/**
 * @returns undefined if nothing is held, or too much
 * @throws UnavailableError if the store is down
 */
async function holdingsShown(
  { key, held }: Pick<InstanceState, 'key' | 'held'>,
  store: Operator<'holdings'>,
): Promise<ShownHoldings | undefined> {
  if (held === 0 || held > MOST_HITS) return undefined;
  const all = await store.ask('holdings', { key });
  const longestFirst = all.toSorted((a, b) => (b.heldMillis ?? -1) - (a.heldMillis ?? -1));
  return { shown: longestFirst.slice(0, SHOWN), count: all.length };
}
