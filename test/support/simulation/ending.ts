import { act } from './actions.js';
import type { SimulatedReplica } from './replica.js';
import { SPREAD_MILLIS } from './punctuality.js';
import { grantedIn } from './stored-requests.js';
import { Violation } from './snapshot.js';
import type { World } from './world.js';

/** Only a livelock takes this many rounds before time goes on: calls follow from calls, but only a few at one moment. */
const MOST_ROUNDS_AT_ONCE = 500;
/** Beside windows and leases: recoveries, time limits, attempts that follow others that failed. */
const OTHER_MILLIS = 5_000;
const LEADER_LOCK_MILLIS = 10_000;
const MOST_ROUNDED_UP = 2.5;
/** Redis keeps a key for a little less after the last call, where somebody waits: lua/lib/instance.lua. */
const LEASES_KEPT = 22;

/**
 * The end of each world: nothing goes wrong any more, and time goes on only when there is nothing else to do.
 * @throws Violation where somebody hangs, or something is left
 */
export async function bringToAnEnd(world: World): Promise<void> {
  await stopFaults(world);
  const { longestWindow, longestHold, longestKeep, longestPause, longestReport } = world;
  const { leaseMillis } = world.shape;
  // An approval counts in a sliding window for up to two of its lengths.
  const spreadMillis = world.rules.hasCalendars ? SPREAD_MILLIS : 0;
  const patience =
    (world.clients.size + 8) * (2 * longestWindow + longestHold + longestKeep + spreadMillis) +
    longestPause +
    longestReport +
    3 * leaseMillis +
    OTHER_MILLIS;
  await goOn(world, patience, 'nobody hangs', () =>
    names([...world.clients.values()].filter((client) => isHanging(world, client))),
  );
  const lastTimers = leaseMillis + longestKeep + LEADER_LOCK_MILLIS;
  await goOn(world, lastTimers, 'nothing is left to be done', () =>
    names(world.replicas.filter(isBusy)),
  );
  checkApprovals(world);
  checkReplicas(world);
  for (const replica of world.replicas) await act(world, `stop ${replica.name}`);
  await goOn(world, OTHER_MILLIS, 'a replica stops', () =>
    names(world.replicas.filter(({ life }) => life === 'closing')),
  );
  checkApprovals(world);
  // Names that no call has touched since Redis's clock went back expire later by the step.
  world.now += world.behindMillis;
  world.now += 8 * longestWindow + longestHold + longestPause + longestReport;
  // Redis rounds the time for which a place is kept up.
  world.now += MOST_ROUNDED_UP * longestKeep;
  world.now += LEASES_KEPT * leaseMillis;
  await world.look();
  const { keys } = world.stored.last;
  if (keys > 0) throw new Violation('nothing stays in Redis', `${keys} keys`);
}

async function stopFaults(world: World): Promise<void> {
  await act(world, 'back');
  for (const replica of world.replicas) {
    await act(world, `thaw ${replica.name}`);
    if (replica.life === 'dead') replica.connection.close();
  }
}

/** Lets everything happen until `left`, which names what is left, names nothing. */
async function goOn(
  world: World,
  patienceMillis: number,
  rule: string,
  left: () => string,
): Promise<void> {
  const until = world.now + patienceMillis;
  for (let roundsAtOnce = 0; roundsAtOnce < MOST_ROUNDS_AT_ONCE; roundsAtOnce += 1) {
    let isDone = false;
    for (const replica of world.replicas) {
      if (replica.isRunning) isDone = (await actOnce(world, replica)) || isDone;
    }
    if (isDone) continue;
    if (left() === '') return;
    const dueAt = Math.min(
      ...world.replicas.filter(({ isRunning }) => isRunning).map(({ clock }) => clock.nextDueAt),
      until,
    );
    if (dueAt >= until) break;
    roundsAtOnce = 0;
    await act(world, `pass ${dueAt - world.now}`);
  }
  throw new Violation(rule, left());
}

async function actOnce(world: World, replica: SimulatedReplica): Promise<boolean> {
  const { name, connection, mailbox, clock } = replica;
  const possible: [boolean, string][] = [
    [replica.hasTicks, 'tick'],
    [connection.isBroken, 'mend'],
    [connection.nextLimitAt < world.now, 'time-out'],
    [mailbox.hasAsked, 'subscribe'],
    [connection.firstSent !== undefined, 'run'],
    [connection.firstAnswered !== undefined, 'answer'],
    [mailbox.readable > 0, 'hear'],
    [clock.nextDueAt <= world.now, 'ring'],
  ];
  let isDone = false;
  for (const [isPossible, verb] of possible) {
    if (isPossible) isDone = (await act(world, `${verb} ${name}`)) || isDone;
  }
  return isDone;
}

function isHanging(
  world: World,
  { replica, outcome }: { replica: string; outcome: unknown },
): boolean {
  return outcome === undefined && world.replica(replica)!.life !== 'dead';
}

function isBusy({ isRunning, clock, room }: SimulatedReplica): boolean {
  return isRunning && (clock.armed > 0 || room.waiting > 0);
}

/** Each approved client was told so, or has given its approval back. */
function checkApprovals(world: World): void {
  for (const request of world.requests.values()) {
    const { id, isNamed, newest, checks, approval, withdrawnBy, isOfNoCheck } = request;
    if (isOfNoCheck || (isNamed && world.hasLostOwners)) continue;
    const { life, hasGivenUp } = world.replica(newest.replica)!;
    const isTold = checks.some(({ outcome }) => outcome === 'approved');
    if (!approval || approval.isForgotten || isTold || life === 'dead' || hasGivenUp) continue;
    // An approval stays as long as a kept place: it lapses, or a replica that goes on gives it back.
    const isKept = newest.keepMillis !== undefined;
    if (isKept && (life !== 'up' || grantedIn(world.stored.last).has(id))) continue;
    if (withdrawnBy < approval.call) {
      throw new Violation(
        'no approval is kept from others',
        `${id} has gone, and did not give it back`,
      );
    }
  }
}

function checkReplicas(world: World): void {
  for (const { name, life, mailbox } of world.replicas) {
    if (life === 'dead') continue;
    if (mailbox.isWanted || mailbox.isSubscribed) {
      throw new Violation('nobody listens for nothing', name);
    }
    // Where the answer was lost by which it would have known of its lead, that runs out.
    if (world.isPunctual(name) && world.lock.holder?.startsWith(`${name}#`)) {
      throw new Violation('nobody leads for nothing', name);
    }
  }
}

function names(all: readonly { readonly name: string }[]): string {
  return all.map(({ name }) => name).join(' ');
}
