import { UnavailableError } from '../../../limiter/errors.js';
import type { Holding, InstanceState, Operator } from '../../../limiter/limiter.js';
import { type ForEachLimit, forEachLimit, type LimitInForce } from '../../../limiter/limits.js';
import type { DeniedKey } from '../../../service/deciding/recent-denials.js';
import type { FleetView, KeyRates } from '../../../service/fleet/fleet.js';
import { inSlices } from '../../../service/deciding/slices.js';
import type { ConnectedRequest } from '../../../service/request-context.js';
import type { Service } from '../../../service/service.js';
import {
  inSteps,
  KEY_STATES,
  type KeyState,
  type Lately,
  needOf,
  statesOf,
  Top,
} from './key-survey.js';
import type { ListQuery } from './ui-parameters.js';

/** The most held hits of a key whose holders are named in a list. Of more, only the key's details name some. */
const MOST_HITS = 100;
const SHOWN = 3;

/** A key that is listed. */
interface ListedKey extends InstanceState {
  /** In the order in which they need a person. */
  readonly states: readonly KeyState[];
  /** Its current run of denials. */
  readonly recentDenials: DeniedKey | undefined;
  /** What is decided about it, if it is one of the busiest keys. */
  readonly rates: KeyRates | undefined;
}

/** A key in a list of the page. */
export interface KeyRow extends ListedKey {
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
 * Chooses the keys that need a person most, or the busiest. A key that is newer than the survey is among them if it was
 * denied, or is one of the busiest. Patterns are matched with each key, so that this is done in slices.
 * @param states the keys as they were surveyed
 * @param unsurveyed a key that is not among them
 */
export async function chooseRows(
  { access, policyOf, slices }: Service,
  context: ConnectedRequest,
  states: ReadonlyMap<string, InstanceState>,
  unsurveyed: InstanceState | undefined,
  fleet: Pick<FleetView, 'denied' | 'byKey'>,
  { limit, search, state: wanted, order }: ListQuery,
) {
  const latelyOf = latelyIn(fleet);
  const text = search.toLowerCase();
  const top = new Top<InstanceState>(limit);
  const counts = Object.fromEntries(KEY_STATES.map((name) => [name, 0])) as Record<
    KeyState,
    number
  >;
  let keys = 0;
  let matching = 0;
  let waiting = 0;
  // Rows are made only of keys that are chosen: there may be many thousands of keys.
  const offer = (state: InstanceState): void => {
    if (!access.mayUse(state.key, context)) return;
    keys += 1;
    waiting += state.waiting;
    if (!state.key.toLowerCase().includes(text)) return;
    const lately = latelyOf(state.key);
    const itsStates = statesOf(state, lately);
    for (const name of itsStates) counts[name] += 1;
    if (wanted && !itsStates.includes(wanted)) return;
    matching += 1;
    top.offer(state, scoreOf(state, lately, order));
  };
  await inSlices(states.values(), slices, context, offer);
  if (unsurveyed) offer(unsurveyed);
  const offerNewer = (key: string): void => {
    if (states.has(key) || unsurveyed?.key === key) return;
    offer(idleState(key, policyOf(key)));
  };
  const denied = new Set(fleet.denied.map(({ key }) => key));
  await inSlices(denied, slices, context, offerNewer);
  await inSlices(fleet.byKey, slices, context, ([key, { approved }]) => {
    if (approved > 0 && !denied.has(key)) offerNewer(key);
  });
  const rows = top.items.map((item): ListedKey => {
    const { run, rates } = latelyOf(item.key);
    return { ...item, recentDenials: run, rates, states: statesOf(item, { run, rates }) };
  });
  return {
    rows,
    /** How many keys the caller may see. */
    keys,
    /** How many requests wait for these. */
    waiting,
    /** How many of these keys contain the text, by state. */
    counts,
    /** How many of these are in the state. */
    matching,
  };
}

/** Counts as {@link chooseRows} has made them, with the rows as they were read since. */
export function countedAgain(
  { rows, keys, waiting, counts, matching }: Awaited<ReturnType<typeof chooseRows>>,
  fresh: readonly KeyRow[],
) {
  const again = { ...counts };
  const add = (listed: readonly ListedKey[], sign: 1 | -1): void => {
    for (const { states } of listed) for (const name of states) again[name] += sign;
  };
  add(rows, -1);
  add(fresh, 1);
  const gone = rows.length - fresh.length;
  return {
    keys: keys - gone,
    waiting: waiting - waitingIn(rows) + waitingIn(fresh),
    counts: again,
    matching: matching - gone,
  };
}

function waitingIn(rows: readonly ListedKey[]): number {
  return rows.reduce((all, { waiting }) => all + waiting, 0);
}

function latelyIn({ denied, byKey }: Pick<FleetView, 'denied' | 'byKey'>) {
  const runs = new Map(denied.map((one) => [one.key, one]));
  return (key: string): Lately => ({ run: runs.get(key), rates: byKey.get(key) });
}

/** By which keys are sorted. */
function scoreOf(state: InstanceState, lately: Lately, order: ListQuery['order']): number {
  const need = needOf(state, lately);
  // Of keys that are equally busy, those that need a person come first.
  return order === 'need' ? need : inSteps(lately.rates?.approved ?? 0) + need / 100;
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
 * The rows as of now. The row of a key that no longer exists is left out, unless the key was denied or approved lately. If
 * the store is down, a row stays as it was.
 * @param onRead is told what the store knows of each key; undefined if the key does not exist
 */
export async function refreshRows(
  rows: readonly ListedKey[],
  store: Operator<'inspect' | 'holdings'>,
  order: ListQuery['order'],
  onRead: (key: string, state: InstanceState | undefined) => void,
): Promise<KeyRow[]> {
  const fresh = await Promise.all(
    rows.map(async (row): Promise<KeyRow[]> => {
      const { key, recentDenials: run, rates } = row;
      try {
        const state = await store.ask('inspect', { key });
        onRead(key, state);
        if (!state && !run && !rates?.approved) return [];
        const now = state ?? idleState(key, row);
        const holdings = await holdingsShown(now, store);
        const states = statesOf(now, { run, rates });
        return [{ ...now, recentDenials: run, rates, states, isCurrent: true, holdings }];
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        return [{ ...row, isCurrent: false }];
      }
    }),
  );
  const score = (row: KeyRow): number =>
    scoreOf(row, { run: row.recentDenials, rates: row.rates }, order);
  return fresh.flat().toSorted((a, b) => score(b) - score(a) || (a.key < b.key ? -1 : 1));
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
