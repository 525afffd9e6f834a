import type { JudgedCall } from './judged-call.js';
import type { StoredWaiter } from './snapshot.js';
import { keyInLanes, kindOf, listIdOf } from './stored-lists.js';

/** Where somebody waits, or would if it waited. */
export type Place = Pick<StoredWaiter, 'ticket' | 'list'>;

/** Who waits, and the kinds of lists, the one first that is served first; undefined if that is not known. */
interface Waiting {
  readonly kinds: readonly string[] | undefined;
  readonly waiting: Iterable<Place>;
}

/**
 * Whether a waiter has its turn before another, as far as their places tell: between groups they do not. Between lanes they do
 * if all waiters of a lane have the same head start, so that its head has its turn before the others.
 */
export function goesFirst(waiter: Place, other: Place, { kinds, waiting }: Waiting): boolean {
  if (listIdOf(waiter) === listIdOf(other)) return waiter.ticket < other.ticket;
  if (kindOf(waiter) !== kindOf(other)) {
    const [rank, rankOfOther] = [waiter, other].map((each) => kinds?.indexOf(kindOf(each)) ?? -1);
    return rank! >= 0 && rank! < rankOfOther!;
  }
  if (kindOf(waiter) !== 'lane' || !hasOneHeadStart(waiter, waiting)) return false;
  return keyInLanes(waiter) < keyInLanes(other);
}

/** The same of a check that joins now. It passes only lanes, and kinds that are served later. */
export function goesBeforeNewcomer(
  waiter: Place,
  newcomer: Place,
  { kinds, waiting }: Waiting,
): boolean {
  if (kindOf(newcomer) !== 'lane' || listIdOf(waiter) === listIdOf(newcomer)) return true;
  if (kindOf(waiter) !== 'lane') {
    if (!kinds) return false;
    const [rank, rankOfLanes] = [kindOf(waiter), 'lane'].map((kind) => kinds.indexOf(kind));
    return rankOfLanes! < 0 || rank! < rankOfLanes!;
  }
  return hasOneHeadStart(waiter, waiting) && keyInLanes(waiter) <= keyInLanes(newcomer);
}

/** The place that a check of a call would have if it joined now. */
export function joiningNow(id: string, { run, stored }: Pick<JudgedCall, 'run' | 'stored'>): Place {
  const { ticket = 0, born = 0 } = stored.state ?? {};
  const checks = run.batches.flatMap((batch) => batch.checks);
  return {
    ticket: Math.max(1000 * run.now, (ticket || 1000 * born) + 1),
    list: checks.find((check) => check.id === id)?.list,
  };
}

function hasOneHeadStart(waiter: Place, waiting: Iterable<Place>): boolean {
  const ofLane = [...waiting].filter((other) => listIdOf(other) === listIdOf(waiter));
  const starts = [waiter, ...ofLane].map((each) => each.ticket - keyInLanes(each));
  return new Set(starts).size === 1;
}
