import type { Holding, InstanceState, Limiter } from '../../../limiter/limiter.js';

/** The most held hits of a key whose holders are named in a list. Of more, only the key's details name some. */
const MOST_HITS = 100;
const SHOWN = 3;

/** The held approvals of a key in a list. */
export interface ShownHoldings {
  /** Those that are held for longest; without a holder nobody knows how long. */
  readonly shown: readonly Holding[];
  /** How many there are. */
  readonly count: number;
}

/**
 * @returns undefined if nothing is held, or too much
 * @throws UnavailableError if the store is down
 */
export async function holdingsShown(
  { key, held }: Pick<InstanceState, 'key' | 'held'>,
  store: Pick<Limiter, 'holdings'>,
): Promise<ShownHoldings | undefined> {
  if (held === 0 || held > MOST_HITS) return undefined;
  const all = await store.holdings(key);
  const longestFirst = all.toSorted((a, b) => (b.heldMillis ?? -1) - (a.heldMillis ?? -1));
  return { shown: longestFirst.slice(0, SHOWN), count: all.length };
}
