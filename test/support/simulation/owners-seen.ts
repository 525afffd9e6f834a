import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { type JudgedCall, type JudgedWorld, verdictsIn, withdrawnBy } from './judged-call.js';
import { countsAt, Violation } from './snapshot.js';
import { memoryFault, recordsFault, requestsKnown } from './stored-requests.js';

/** To which of its checks each request belongs whose caller has chosen the id, over all calls. */
export class OwnersSeen {
  constructor(private readonly world: JudgedWorld) {}

  judge(call: JudgedCall): void {
    const { number } = call;
    for (const [{ owner }, verdict] of verdictsIn(call)) {
      const check = owner === undefined ? undefined : this.world.checkOfOwner(owner);
      if (!check) continue;
      check.ranBy ??= number;
      if (verdict === VERDICT.approved) check.approvedBy ??= number;
    }
    this.#served(call);
    this.#checkPlaces(call);
    const before = requestsKnown(call.stored);
    for (const [id, { is, owner }] of requestsKnown(call.after)) {
      const request = this.world.requestOf(id);
      if (request) request.isOfNoCheck = isOfNoCheck(owner);
      if (isOfNoCheck(owner)) {
        this.#checkIsToldAgain(call, id, before.get(id)?.owner === owner);
        continue;
      }
      const check = this.world.checkOfOwner(owner);
      if (!request || check?.request !== request) {
        throw new Violation('a request belongs to one of its checks', `${id} to ${owner}`);
      }
      if (before.has(id) && before.get(id)?.owner !== owner && !mayChangeOwner(call, owner)) {
        throw new Violation('only a later check takes a request over', `${owner} got ${id}`);
      }
      // From now on its place is kept for as long as the later check says.
      if (request.owner !== check) request.keptUntil = -Infinity;
      request.owner = check;
      if (is === 'approved') check.approvedBy ??= number;
    }
  }

  /** Before a check takes a place over, the queue is served: then the approval is still for the earlier one. */
  #served(call: JudgedCall): void {
    const known = requestsKnown(call.stored);
    for (const id of call.approved) {
      const record = known.get(id);
      const takers = verdictsIn(call).filter(([check]) => check.id === id);
      const joined = takers.filter(([, verdict]) => Number(verdict) > VERDICT.approved);
      // Or one that joins is served in the same call.
      for (const [{ owner }] of takers.at(-1)?.[1] === VERDICT.approved ? joined : []) {
        const check = owner === undefined ? undefined : this.world.checkOfOwner(owner);
        if (check) check.approvedBy ??= call.number;
      }
      // An approval that is kept for the caller of a kept place belongs to the check which claims it.
      if (record?.is !== 'waiting' || record.keepMillis !== undefined) continue;
      if (joined.length > 0) continue;
      const check = this.world.checkOfOwner(record.owner);
      if (check) check.approvedBy ??= call.number;
    }
  }

  /** An approval belongs to no check if a later check is told of it again: neither gives it back. */
  #checkIsToldAgain({ run: { batches } }: JudgedCall, id: string, wasSo: boolean): void {
    const checks = batches.flatMap((batch) => batch.checks);
    if (!wasSo && !checks.some((check) => check.id === id))
      throw new Violation('a request belongs to one of its checks', id);
  }

  #checkPlaces(call: JudgedCall): void {
    const { run, stored, after, isTorn } = call;
    if (isTorn || !stored.isConsistent || !after.isConsistent || !after.state) return;
    const fault =
      recordsFault(after) ?? (this.world.hasLostMemory ? undefined : memoryFault(after));
    if (fault) throw fault;
    const left = withdrawnBy(call);
    const asked = [...run.waiters.values()];
    for (const [id, place] of stored.waiting) {
      const { ticket } = place;
      const isKept = countsAt(stored, place, run.now) && !left.has(id);
      const now = after.waiting.get(id)?.ticket ?? ticket;
      // After a loss of memory, a replica may know an older place of the request.
      const isOlder = asked.some((waiter) => waiter.id === id && waiter.ticket === now);
      if (isKept && now !== ticket && !(now < ticket && isOlder)) {
        throw new Violation('a place keeps its ticket', `${id} with ${ticket} has ${now}`);
      }
    }
  }
}

/** Whether an owner is none: the checks of a replica have numbers from 1 on. */
function isOfNoCheck(owner: string): boolean {
  return owner.endsWith('#0');
}

/** Whether a check may have got a request with a call: it is in the call, or the call has put its place back. */
function mayChangeOwner({ run }: JudgedCall, owner: string): boolean {
  const ofChecks = run.batches.flatMap(({ checks }) => checks.map((check) => check.owner));
  const ofWaiters = [...run.waiters.values()].map((waiter) => waiter.owner);
  return [...ofChecks, ...ofWaiters].includes(owner);
}
