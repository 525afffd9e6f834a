import type { InstanceState, Limiter, Limits } from '../../../limiter/limiter.js';
import { UnavailableError } from '../../../limiter/errors.js';
import type { DeniedKey } from '../../../service/deciding/recent-denials.js';
import { inSlices } from '../../../service/deciding/in-slices.js';
import type { Turns, TurnTaker } from '../../../service/deciding/turns.js';
import { Top } from './top.js';

export const SORTS = ['denied', 'queue', 'fullest'] as const;
export type Sort = (typeof SORTS)[number];

const NOTHING_COUNTED = {
  approved: 0,
  held: 0,
  denied: 0,
  waiting: 0,
  pausedMillis: 0,
  further: undefined,
};

/** A key in a list of the page. */
export interface KeyRow {
  readonly key: string;
  readonly limits: Limits;
  readonly approved: number;
  /** The hits of held approvals, which are among the approved ones. */
  readonly held: number;
  readonly denied: number;
  readonly waiting: number;
  /** Until the pause of the key ends; 0 if it is not paused. */
  readonly pausedMillis: number;
  /** The further limits of the key, if it has any. */
  readonly further?: InstanceState['further'];
  /** The current run of denials, as far as this replica knows. */
  readonly recentDenials: DeniedKey | undefined;
}

/** The data of rows: the keys as they were surveyed, and the keys that were denied since. */
export interface RowSources {
  readonly states: ReadonlyMap<string, InstanceState>;
  /** A key that is not among them. */
  readonly unsurveyed?: InstanceState | undefined;
  readonly recentDenials: readonly DeniedKey[];
  readonly limitsOf: (key: string) => Limits;
  /** Whether a key is to be listed. */
  readonly accepts: (key: string) => boolean;
  readonly turns: Pick<Turns, 'next'>;
  readonly taker: TurnTaker;
}

export interface ChosenRows {
  readonly rows: readonly KeyRow[];
  /** How many keys there were to choose from. */
  readonly matching: number;
}

/**
 * Chooses the first rows in an order. A key that is newer than the survey is among them if it was denied. Patterns are
 * matched with each key, so that this is done in turns.
 */
export async function chooseRows(
  sources: RowSources,
  sort: Sort,
  most: number,
): Promise<ChosenRows> {
  const { states, unsurveyed, recentDenials, accepts, turns, taker } = sources;
  const deniedByKey = new Map(recentDenials.map((one) => [one.key, one]));
  const scoreOf = SCORES[sort];
  const top = new Top<KeyRow | InstanceState>(most);
  let matching = 0;
  // Rows are made only of keys that are chosen: there may be many thousands of keys.
  const offer = (state: InstanceState): void => {
    if (!accepts(state.key)) return;
    matching += 1;
    top.offer(state, scoreOf(state, deniedByKey.get(state.key)));
  };
  await inSlices(states.values(), turns, taker, offer);
  if (unsurveyed) offer(unsurveyed);
  await inSlices(recentDenials, turns, taker, (one) => {
    if (states.has(one.key) || unsurveyed?.key === one.key || !accepts(one.key)) return;
    matching += 1;
    const row = unseenRow(one, sources);
    top.offer(row, scoreOf(row, one));
  });
  const rows = top.items.map((item) => ({ ...item, recentDenials: deniedByKey.get(item.key) }));
  return { rows, matching };
}

/** The keys that are denied now, those with the most denials first. */
export function chooseDenied(sources: RowSources, most: number): Promise<ChosenRows> {
  return chooseRows({ ...sources, states: new Map() }, 'denied', most);
}

function unseenRow(recentDenials: DeniedKey, { limitsOf }: RowSources): KeyRow {
  const { key } = recentDenials;
  return { key, limits: limitsOf(key), ...NOTHING_COUNTED, recentDenials };
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
        const state = await limiter.inspect(row.key);
        if (state) return [{ ...state, recentDenials: row.recentDenials }];
        return row.recentDenials ? [{ ...row, ...NOTHING_COUNTED }] : [];
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

type ScoreOf = (state: Omit<InstanceState, 'key'>, recent: DeniedKey | undefined) => number;

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
export function fillOf({
  approved,
  limits: { maxRequests },
  further = [],
}: Pick<InstanceState, 'approved' | 'limits' | 'further'>): number {
  const own = maxRequests === 0 ? 1 : approved / maxRequests;
  return Math.min(1, Math.max(own, ...further.map((limit) => limit.approved / limit.maximum)));
}

/** Denials per second: those of this replica, or those of all replicas in this window, which may have just begun. */
function denialsOf(
  { denied, limits }: Parameters<ScoreOf>[0],
  recent: DeniedKey | undefined,
): number {
  return Math.max(recent?.perSecond ?? 0, (denied * 1000) / limits.windowMillis);
}
