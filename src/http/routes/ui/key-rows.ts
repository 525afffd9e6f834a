import { UnavailableError } from '../../../limiter/errors.js';
import type { InstanceState, Limiter, LimitsOf } from '../../../limiter/limiter.js';
import {
  capacityOf,
  type ForEachLimit,
  forEachLimit,
  type LimitInForce,
} from '../../../limiter/limits.js';
import type { DeniedKey } from '../../../service/deciding/recent-denials.js';
import { inSlices } from '../../../service/deciding/in-slices.js';
import type { Slices, SliceTaker } from '../../../service/deciding/slices.js';
import { Top } from './top.js';

export const SORTS = ['denied', 'queue', 'fullest'] as const;
export type Sort = (typeof SORTS)[number];

/** A key in a list of the page. */
export interface KeyRow extends InstanceState {
  /** The current run of denials, as far as this replica knows. */
  readonly recentDenials: DeniedKey | undefined;
}

/** The data of rows: the keys as they were surveyed, and the keys that were denied since. */
export interface RowSources {
  readonly states: ReadonlyMap<string, InstanceState>;
  /** A key that is not among them. */
  readonly unsurveyed?: InstanceState | undefined;
  readonly recentDenials: readonly DeniedKey[];
  readonly limitsOf: LimitsOf;
  /** Whether a key is to be listed. */
  readonly accepts: (key: string) => boolean;
  readonly slices: Pick<Slices, 'next'>;
  readonly taker: SliceTaker;
}

export interface ChosenRows {
  readonly rows: readonly KeyRow[];
  /** How many keys there were to choose from. */
  readonly matching: number;
}

/**
 * Chooses the first rows in an order. A key that is newer than the survey is among them if it was denied. Patterns are
 * matched with each key, so that this is done in slices.
 */
export async function chooseRows(
  sources: RowSources,
  sort: Sort,
  most: number,
): Promise<ChosenRows> {
  const { states, unsurveyed, recentDenials, limitsOf, accepts, slices, taker } = sources;
  const deniedByKey = new Map(recentDenials.map((one) => [one.key, one]));
  const scoreOf = SCORES[sort];
  const top = new Top<InstanceState>(most);
  let matching = 0;
  // Rows are made only of keys that are chosen: there may be many thousands of keys.
  const offer = (state: InstanceState): void => {
    if (!accepts(state.key)) return;
    matching += 1;
    top.offer(state, scoreOf(state, deniedByKey.get(state.key)));
  };
  await inSlices(states.values(), slices, taker, offer);
  if (unsurveyed) offer(unsurveyed);
  await inSlices(recentDenials, slices, taker, (one) => {
    if (states.has(one.key) || unsurveyed?.key === one.key || !accepts(one.key)) return;
    matching += 1;
    const state = idleState(one.key, limitsOf(one.key));
    top.offer(state, scoreOf(state, one));
  });
  const rows = top.items.map((item) => ({ ...item, recentDenials: deniedByKey.get(item.key) }));
  return { rows, matching };
}

/** The keys that are denied now, those with the most denials first. */
export function chooseDenied(sources: RowSources, most: number): Promise<ChosenRows> {
  return chooseRows({ ...sources, states: new Map() }, 'denied', most);
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
 */
export async function refreshRows(
  rows: readonly KeyRow[],
  sort: Sort,
  limiter: Pick<Limiter, 'inspect'>,
): Promise<KeyRow[]> {
  const fresh = await Promise.all(
    rows.map(async (row): Promise<KeyRow[]> => {
      try {
        const { key, recentDenials } = row;
        const state = await limiter.inspect(key);
        if (!state && !recentDenials) return [];
        return [{ ...(state ?? idleState(key, row)), recentDenials }];
      } catch (error) {
        if (error instanceof UnavailableError) return [row];
        throw error;
      }
    }),
  );
  const top = new Top<KeyRow>(rows.length);
  for (const row of fresh.flat()) top.offer(row, SCORES[sort](row, row.recentDenials));
  return top.items;
}

type ScoreOf = (state: InstanceState, recent: DeniedKey | undefined) => number;

/** The scores by which rows are ordered. The later terms only order rows that are equal in the first. */
const SCORES: Readonly<Record<Sort, ScoreOf>> = {
  fullest: (state, recent) => {
    const denials = denialsOf(state, recent);
    return fillOf(state) * 1e6 + Math.min(state.waiting, 1e5) + denials / (1 + denials);
  },
  queue: (state) => state.waiting * 10 + fillOf(state),
  denied: (state, recent) => denialsOf(state, recent) * 1000 + fillOf(state),
};

/** Of the limit that is fullest: at most 1, also if its maximum was lowered in mid-window. */
export function fillOf({ limits }: Pick<InstanceState, 'limits'>): number {
  const fills = limits.map((limit) => {
    const capacity = capacityOf(limit);
    return capacity === 0 ? 1 : limit.used / capacity;
  });
  return Math.min(1, Math.max(...fills));
}

/** Denials per second: those of this replica, or those of all replicas in this window, which may have just begun. */
function denialsOf(
  { denied, limits: [own] }: InstanceState,
  recent: DeniedKey | undefined,
): number {
  return Math.max(recent?.perSecond ?? 0, (denied * 1000) / own.windowMillis);
}
