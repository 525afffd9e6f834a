import { luaNumber } from '../lua-constants.js';
import { type JudgedCall, type JudgedWorld, withdrawnBy } from './judged-call.js';
import { countsAt, Violation } from './snapshot.js';
import { headsFault } from './stored-lists.js';
import {
  goesBeforeNewcomer,
  goesFirst,
  hasLimitOfLanes,
  joinedBefore,
  joiningNow,
} from './turn-order.js';

const RECOVERY_MILLIS = luaNumber('lib/recovery', 'RECOVERY_MILLIS');

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
    const mayPass = hasLimitOfLanes(call);
    if (approved.length > 0 && !beginsKey && run.now < stored.state!.recoveryUntil) {
      throw new Violation('nobody is approved while a key recovers', approved.join(' '));
    }
    const putBack = new Map([...run.waiters.values()].map((each) => [each.id, each]));
    const waiting = [stored.waiting, putBack, after.waiting].flatMap((all) => [...all.values()]);
    const kinds = headsFault(stored) ? undefined : stored.lists.kinds;
    for (const id of approved) {
      const place = stored.waiting.get(id) ?? putBack.get(id) ?? joinedBefore(id, call);
      const newcomer = joiningNow(id, { run, stored });
      for (const [other, waiter] of after.waiting) {
        const hasWaited = putBack.has(other) || this.#hasPlace(other, { run, stored });
        const isOvertaken = place
          ? hasWaited && goesFirst(waiter, place, { kinds, mayPass, waiting })
          : this.#isKnownToWait(other, { run, stored }) &&
            goesBeforeNewcomer(waiter, newcomer, { kinds, mayPass, waiting });
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
    const mayPass = hasLimitOfLanes(call);
    const all = { kinds: undefined, mayPass, waiting: [...returning, ...waiting.values()] };
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
