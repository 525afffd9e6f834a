import type { SimulatedClient, SimulatedRequest } from './client.js';
import { type JudgedCall, type JudgedWorld, withdrawnBy } from './judged-call.js';
import { DRIFT } from './shape.js';
import { idsOf, keptMillisOf, type StoredWaiter, Violation } from './snapshot.js';
import { grantedIn, requestsKnown } from './stored-requests.js';
import type { World } from './world.js';

/** A timer rings in the first whole millisecond of the world in which it is due. */
const ROUNDED_MILLIS = 1;

/** How long a replica keeps a place at least, in ms of the world. */
function leastKeptMillis(world: World, { replica, keepMillis = 0 }: SimulatedClient): number {
  const ofReplica = world.replica(replica)!.clock.worldMillis(keepMillis);
  return Math.min(keepMillis, ofReplica) - ROUNDED_MILLIS;
}

/**
 * Takes note of a place whose check has ended, or seems to have: it stays for its time, also if its replica does nothing any
 * more from now on. That is only so if Redis has heard of the replica in time.
 */
export function noteKept(world: World, client: SimulatedClient): void {
  const { request, keepMillis, outcome, conflict } = client;
  const place = world.stored.last.waiting.get(request.id);
  const waitsOn = outcome === undefined || outcome === 'waiting' || outcome === 'failed';
  // Redis may have lost a take-over, and got the place back for the earlier check, which then hears that it is over.
  if (!waitsOn || conflict !== undefined || wasTakenOver(client)) return;
  if (keepMillis === undefined || request.owner !== client || !place) return;
  const leaseEnds =
    (world.stored.last.leases[place.countedAs] ?? 0) - keptMillisOf(place.countedAs);
  if (leaseEnds < world.redisNow) return;
  request.keptUntil = Math.max(request.keptUntil, world.now + leastKeptMillis(world, client));
}

/** Whether a check that ran later has got the request since. */
function wasTakenOver({ request: { checks }, ranBy = Infinity }: SimulatedClient): boolean {
  return checks.some((check) => check.ranBy !== undefined && check.ranBy > ranBy);
}

/** Whether a replica surely has the place of a check that it has told that its request waits. */
export function isStillKept(world: World, { newest, approval }: SimulatedRequest): boolean {
  const { outcome, endedAt } = newest;
  return (
    outcome === 'waiting' &&
    approval === undefined &&
    world.now < endedAt + leastKeptMillis(world, newest)
  );
}

/** Whether a place is kept in Redis only: its replica has stopped, or is gone, and serves nobody. */
export function isLeftBehind(world: World, { replica, keepMillis }: StoredWaiter): boolean {
  return keepMillis !== undefined && world.replica(replica)!.life !== 'up';
}

/**
 * Before time goes on where nothing is late, a place is gone whose check is over, unless it is kept: then it is gone when its
 * time is over.
 */
export function checkPlaceIsWanted(world: World, id: string, place: StoredWaiter): void {
  const { replica } = place;
  const { newest } = world.requestOf(id)!;
  if (newest.outcome === undefined || !world.isPunctual(replica)) return;
  const { keepMillis, endedAt, outcome } = newest;
  const waitsOn = outcome === 'waiting' || outcome === 'failed';
  if (keepMillis === undefined || !waitsOn) throw new Violation('nobody waits for nothing', id);
  const { clock } = world.replica(replica)!;
  const over = world.now - endedAt - clock.worldMillis(keepMillis) - ROUNDED_MILLIS;
  // The place that a replica leaves behind ends with a lease.
  if (!isLeftBehind(world, place) && over > 0) {
    throw new Violation('a kept place ends after its time', `${id} stays on for ${over} ms`);
  }
}

/** Places that outlive their connections, over all calls: they stay for their time, and no longer. */
export class KeptPlacesSeen {
  /** When the last call of each replica ran, by the world's time. */
  readonly #lastCalls = new Map<string, number>();

  constructor(private readonly world: JudgedWorld) {}

  /** @param hasSteppedBack Redis's clock has gone back, so that leases may last longer by the world's time */
  judge(call: JudgedCall, hasSteppedBack: boolean): void {
    const { run, approved, stored } = call;
    this.#lastCalls.set(run.replica, this.world.now);
    this.#checkLeases(call);
    this.#checkNoneIsLost(call);
    if (hasSteppedBack) return;
    for (const id of approved) {
      const place = stored.waiting.get(id);
      // A check may find that the place has ended, and get a new approval.
      const isAsked = run.script === 'check' && run.requestIds.includes(id);
      if (place?.keepMillis !== undefined && !isAsked) this.#checkStillCounts(id, place);
    }
  }

  /** Places outlive their replica by the time for which they are kept, rounded up. */
  #checkLeases({ run, stored, after }: JudgedCall): void {
    // A queue that is repaired has leases of replicas that have to come back.
    if (!stored.isConsistent) return;
    for (const id of idsOf(after, run.replica)) {
      const lease = after.leases[id]!;
      if (lease === stored.leases[id]) continue;
      const millis = lease - run.now;
      const expected = this.world.shape.leaseMillis + keptMillisOf(id);
      if (millis === expected) continue;
      throw new Violation('a lease is as long as its places are kept', `${id}: ${millis} ms`);
    }
  }

  /** A place or an unclaimed approval ends before its time only by its caller. */
  #checkNoneIsLost(call: JudgedCall): void {
    const { run, stored, after, isTorn } = call;
    if (isTorn || !stored.isConsistent || !after.isConsistent) return;
    const known = requestsKnown(after);
    const isAskedFor = run.script !== 'withdraw';
    const withdrawn = withdrawnBy(call);
    for (const [id, { lapsesAt }] of [...this.#kept(call)]) {
      const { keptUntil, newest, checks } = this.world.requestOf(id)!;
      if (known.has(id) || lapsesAt <= run.now || this.world.now >= keptUntil) continue;
      if (isAskedFor && withdrawn.has(id)) continue;
      const waited = this.world.now - Math.min(...checks.map(({ askedAt }) => askedAt));
      const shortestWait = (1 - DRIFT) * newest.maxWaitMillis - ROUNDED_MILLIS;
      if (newest.outcome === 'approved' || waited >= shortestWait) continue;
      const detail = `${id} is gone ${keptUntil - this.world.now} ms before`;
      throw new Violation('a kept place stays for its time', detail);
    }
  }

  /** The requests with kept places, or with unclaimed approvals, and when the latter lapse. */
  *#kept({ stored }: JudgedCall): Iterable<readonly [string, { readonly lapsesAt: number }]> {
    for (const [id, { keepMillis }] of stored.waiting) {
      if (keepMillis !== undefined) yield [id, { lapsesAt: Infinity }];
    }
    for (const id of grantedIn(stored).keys()) yield [id, stored.holds.get(id) ?? { lapsesAt: 0 }];
  }

  /** The place of a replica that has called long ago does not block its turn. */
  #checkStillCounts(id: string, { replica, countedAs }: StoredWaiter): void {
    const lastCall = this.#lastCalls.get(replica) ?? -Infinity;
    const ends = lastCall + this.world.shape.leaseMillis + keptMillisOf(countedAs);
    if (this.world.now < ends) return;
    throw new Violation('a kept place ends after its time', `${id} is approved later`);
  }
}
