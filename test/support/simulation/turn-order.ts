import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { type JudgedCall, verdictsIn } from './judged-call.js';
import type { StoredWaiter } from './snapshot.js';
import { keyInLanes, kindOf, listIdOf } from './stored-lists.js';

/** Where somebody waits, or would if it waited. */
export type Place = Pick<StoredWaiter, 'ticket' | 'list'>;

/** The waiters, and what gives them their turns. */
interface Waiting {
  /** The kinds of lists, the one first that is served first; undefined if that is not known. */
  readonly kinds: readonly string[] | undefined;
  /** Whether others may pass a waiter of a lane, since a limit of that is full. */
  readonly mayPass: boolean;
  readonly waiting: Iterable<Place>;
}

/**
 * Whether a waiter has its turn before another, as far as their places tell: between groups they do not. Between lanes they do
 * if all waiters of a lane have the same head start, so that its head has its turn before the others.
 */
export function goesFirst(
  waiter: Place,
  other: Place,
  { kinds, mayPass, waiting }: Waiting,
): boolean {
  if (listIdOf(waiter) === listIdOf(other)) return waiter.ticket < other.ticket;
  if (mayPass && kindOf(waiter) === 'lane') return false;
  if (kindOf(waiter) !== kindOf(other)) {
    const [rank, rankOfOther] = [waiter, other].map((each) => kinds?.indexOf(kindOf(each)) ?? -1);
    return rank! >= 0 && rank! < rankOfOther!;
  }
  if (kindOf(waiter) !== 'lane' || !hasOneHeadStart(waiter, waiting)) return false;
  return keyInLanes(waiter) < keyInLanes(other);
}

/**
 * The same of a check that joins now. It passes lanes whose limit is full, the kinds that are served later, and other lanes or
 * groups by its order key.
 */
export function goesBeforeNewcomer(
  waiter: Place,
  newcomer: Place,
  { kinds, mayPass, waiting }: Waiting,
): boolean {
  const [kind, kindOfNewcomer] = [kindOf(waiter), kindOf(newcomer)];
  if (listIdOf(waiter) === listIdOf(newcomer)) return true;
  if (mayPass && kind === 'lane') return false;
  if (kindOfNewcomer === 'fifo') return true;
  if (kind !== kindOfNewcomer) {
    if (!kinds) return false;
    const [rank, rankOfNewcomer] = [kind, kindOfNewcomer].map((each) => kinds.indexOf(each));
    return rankOfNewcomer! < 0 || rank! < rankOfNewcomer!;
  }
  if (kind === 'group') return false;
  return hasOneHeadStart(waiter, waiting) && keyInLanes(waiter) <= keyInLanes(newcomer);
}

/** The place of a check that joined, and that a later batch of the call has served; undefined if it did not wait. */
export function joinedBefore(id: string, call: JudgedCall): Place | undefined {
  for (const [check, verdict] of verdictsIn(call)) {
    const ticket = Number(verdict);
    if (check.id === id && ticket > VERDICT.approved) return { ticket, list: check.list };
  }
  return undefined;
}

/** Whether a limit of a key counts some lanes only, before or after a call. */
export function hasLimitOfLanes({ stored, after }: Pick<JudgedCall, 'stored' | 'after'>): boolean {
  const limits = [stored, after].flatMap(({ state }) => state?.further ?? []);
  return limits.some(({ lanes }) => lanes);
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
