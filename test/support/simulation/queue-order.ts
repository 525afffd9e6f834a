import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { luaNumber } from '../lua-constants.js';
import { type JudgedCall, type JudgedWorld, verdictsIn, withdrawnBy } from './judged-call.js';
import { countsAt, type StoredWaiter, Violation } from './snapshot.js';
import { ticketInList } from '../stored-queue.js';
import { haveLimits } from './groups-seen.js';
import { headsFault, keyInLanes, kindOf, listIdOf } from './stored-lists.js';

/** Where somebody waits, or would if it waited. */
export type Place = Pick<StoredWaiter, 'ticket' | 'list'>;

/** The waiters, and what gives them their turns. */
interface Waiting {
  /** The kinds of lists, the one first that is served first; undefined if that is not known. */
  readonly kinds: readonly string[] | undefined;
  /** The kinds of lists of which others may pass a waiter, since a limit of its own list is full. */
  readonly passed: ReadonlySet<string>;
  readonly waiting: Iterable<Place>;
}

/**
 * Whether a waiter has its turn before another, as far as their places tell: between groups they do not. Between lanes they do
 * if all waiters of a lane have the same head start, so that its head has its turn before the others.
 */
function goesFirst(waiter: Place, other: Place, { kinds, passed, waiting }: Waiting): boolean {
  if (listIdOf(waiter) === listIdOf(other)) return ticketInList(waiter) < ticketInList(other);
  if (passed.has(kindOf(waiter))) return false;
  if (kindOf(waiter) !== kindOf(other)) {
    const [rank, rankOfOther] = [waiter, other].map((each) => kinds?.indexOf(kindOf(each)) ?? -1);
    return rank! >= 0 && rank! < rankOfOther!;
  }
  if (kindOf(waiter) !== 'lane' || !hasOneHeadStart(waiter, waiting)) return false;
  return keyInLanes(waiter) < keyInLanes(other);
}

/**
 * The same of a check that joins now. It passes lanes and groups whose limit is full, the kinds that are served later, and other lanes or
 * groups by its order key.
 */
function goesBeforeNewcomer(
  waiter: Place,
  newcomer: Place,
  { kinds, passed, waiting }: Waiting,
): boolean {
  const [kind, kindOfNewcomer] = [kindOf(waiter), kindOf(newcomer)];
  if (listIdOf(waiter) === listIdOf(newcomer)) return true;
  if (passed.has(kind)) return false;
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
function joinedBefore(id: string, call: JudgedCall): Place | undefined {
  for (const [check, verdict] of verdictsIn(call)) {
    const ticket = Number(verdict);
    if (check.id === id && ticket > VERDICT.approved) return { ticket, list: check.list };
  }
  return undefined;
}

/** The kinds of lists of which a limit counts some only, before or after a call. */
function passedKinds({ stored, after }: Pick<JudgedCall, 'stored' | 'after'>): Set<string> {
  const limits = [stored, after].flatMap(({ state }) => state?.further ?? []);
  const ofLanes = limits.some(({ lanes }) => lanes) ? ['lane'] : [];
  return new Set([...ofLanes, ...([stored, after].some(haveLimits) ? ['group'] : [])]);
}

/** The place that a check of a call would have if it joined now. */
function joiningNow(id: string, call: JudgedCall): Place {
  const { run, stored } = call;
  const { ticket = 0, born = 0 } = stored.state ?? {};
  const checks = verdictsIn(call).filter(([check]) => check.id === id);
  const [check] = checks.find(([, verdict]) => verdict === VERDICT.approved) ?? checks[0] ?? [];
  return {
    ticket: Math.max(1000 * run.now, (ticket || 1000 * born) + 1),
    list: check?.list,
  };
}

function hasOneHeadStart(waiter: Place, waiting: Iterable<Place>): boolean {
  const ofLane = [...waiting].filter((other) => listIdOf(other) === listIdOf(waiter));
  const starts = [waiter, ...ofLane].map((each) => each.ticket - keyInLanes(each));
  return new Set(starts).size === 1;
}

export const RECOVERY_MILLIS = luaNumber('lib/recovery', 'RECOVERY_MILLIS');

/** Turns come in their order, and nobody is lost: also if Redis loses memory, as far as replicas tell it in time. */
export class QueueOrder {
  /** Somebody has removed a part of the queue, and what is left shows that others waited. */
  #isQueueTorn = false;
  /** Redis has lost everything, and a replica that waits has shown it so in time. */
  #isLossKnown = false;

  constructor(private readonly world: JudgedWorld) {}

  memoryLost(isQueueTorn: boolean): void {
    this.#isQueueTorn = isQueueTorn;
    this.#isLossKnown = false;
  }

  judge(call: JudgedCall): void {
    const { waiting } = call.after;
    for (const [id, { ticket, list }] of waiting) {
      const request = this.world.requestOf(id)!;
      request.ticket = request.isNamed ? ticket : (request.ticket ?? ticket);
      request.list = list;
    }
    for (const id of withdrawnBy(call)) {
      const request = this.world.requestOf(id)!;
      if (request.isNamed && !waiting.has(id)) request.ticket = undefined;
    }
    this.#checkOrder(call);
    this.#checkReturn(call);
    this.#checkNobodyIsLost(call);
  }

  #checkOrder(call: JudgedCall): void {
    const { run, stored, after, approved, beginsKey } = call;
    const passed = passedKinds(call);
    if (approved.length > 0 && !beginsKey && run.now < stored.state!.recoveryUntil) {
      throw new Violation('nobody is approved while a key recovers', approved.join(' '));
    }
    const putBack = new Map([...run.waiters.values()].map((each) => [each.id, each]));
    const waiting = [stored.waiting, putBack, after.waiting].flatMap((all) => [...all.values()]);
    // A key that begins again has its waiters put back in the order of their tickets.
    const kinds = beginsKey || headsFault(stored) ? undefined : stored.lists.kinds;
    for (const id of approved) {
      const place = stored.waiting.get(id) ?? putBack.get(id) ?? joinedBefore(id, call);
      const newcomer = joiningNow(id, call);
      for (const [other, waiter] of after.waiting) {
        const hasWaited = putBack.has(other) || this.#hasPlace(other, { run, stored });
        const isOvertaken = place
          ? hasWaited && goesFirst(waiter, place, { kinds, passed, waiting })
          : this.#isKnownToWait(other, { run, stored }) &&
            goesBeforeNewcomer(waiter, newcomer, { kinds, passed, waiting });
        if (!isOvertaken) continue;
        const rule = place
          ? 'who has the next turn is served first'
          : 'newcomers wait behind those who wait';
        throw new Violation(rule, `${id} is approved before ${other}`);
      }
      if (after.waiting.has(id)) throw new Violation('who is approved waits no more', id);
    }
  }

  /** A check that is sent again after its lease has lapsed is decided again, in the order of its call. */
  #hasPlace(id: string, { run, stored }: Pick<JudgedCall, 'run' | 'stored'>): boolean {
    const place = stored.waiting.get(id);
    return !!place && (!run.requestIds.includes(id) || countsAt(stored, place, run.now));
  }

  /** Whether it waited, and its replica was thought alive, or says with its call that it has waiters. */
  #isKnownToWait(id: string, { run, stored }: Pick<JudgedCall, 'run' | 'stored'>): boolean {
    const place = stored.waiting.get(id);
    if (!place) return false;
    const isAlive = countsAt(stored, place, run.now) || this.world.returnsInTime(place.replica);
    const isOfCaller = place.replica === run.replica && run.lowestTicket <= place.ticket;
    return isAlive || (isOfCaller && this.#hasPlace(id, { run, stored }));
  }

  /** Waiters from before Redis lost its memory come first, once it could know of them. */
  #checkReturn(call: JudgedCall): void {
    const { run, approved, isTorn } = call;
    const { state, waiting } = call.after;
    const wasKnown = this.#isLossKnown;
    if (state && run.lowestTicket < state.born * 1000 && run.now < state.born + RECOVERY_MILLIS) {
      this.#isLossKnown = true;
    }
    // Of several batches, one may be from before anybody waited at its replica, as far as that knew.
    const isKnown = wasKnown || (this.#isLossKnown && run.batches.length <= 1);
    if (isTorn ? !this.#isQueueTorn : !isKnown) return;
    const rule = isTorn ? 'a torn queue keeps its order' : 'a loss changes no order';
    const returning = [...this.world.waitersToReturn()].flatMap(({ id, ticket, list, approval }) =>
      ticket === undefined || approval?.isForgotten === false ? [] : [{ id, ticket, list }],
    );
    const passed = passedKinds(call);
    const all = { kinds: undefined, passed, waiting: [...returning, ...waiting.values()] };
    for (const id of approved) {
      const { ticket, list } = this.world.requestOf(id)!;
      for (const other of returning) {
        const isOvertaken =
          ticket === undefined
            ? goesBeforeNewcomer(other, joiningNow(id, call), all)
            : goesFirst(other, { ticket, list }, all);
        if (!isOvertaken || waiting.has(other.id)) continue;
        throw new Violation(rule, `${id} is approved before ${other.id}`);
      }
    }
  }

  /** Places are lost with leases only. */
  #checkNobodyIsLost(call: JudgedCall): void {
    const { run, stored, after, approved, isTorn } = call;
    if (isTorn || !stored.isConsistent) return;
    if (!after.isConsistent) {
      throw new Violation('the keys of the queue agree', 'they contradict each other');
    }
    const left = withdrawnBy(call);
    for (const [id, place] of stored.waiting) {
      if (after.waiting.has(id) || approved.includes(id)) continue;
      if (left.has(id)) continue;
      // Put back by a settle that was under way when it was told so, and Redis lost its approval.
      const { newest } = this.world.requestOf(id)!;
      if (newest.outcome === 'approved') continue;
      const hasLapsed = !countsAt(stored, place, run.now);
      const isWaiting = newest.outcome === undefined;
      if (hasLapsed && !(isWaiting && this.world.returnsInTime(place.replica))) continue;
      throw new Violation('a place is kept', `${id} is gone from the queue`);
    }
  }
}
