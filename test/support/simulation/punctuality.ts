import { DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import { isSameAlgorithm } from '../../../src/limiter/limits.js';
import { LONGEST_BACKOFF_MILLIS } from '../../../src/redis/shared/losses.js';
import { areSameFurther, haveCalendar } from './calendars.js';
import type { SimulatedClient } from './client.js';
import { checkPlaceIsWanted, isLeftBehind } from './kept-places.js';
import { luaNumber } from '../lua-constants.js';
import { firstRoom } from './model-limits.js';
import { Model } from './model.js';
import type { SimulatedReplica } from './replica.js';
import { countsAt, type Snapshot, Violation } from './snapshot.js';
import { nextWaiter } from './stored-lists.js';
import { grantedIn } from './stored-requests.js';
import { windowLength } from '../stored-state.js';
import type { World } from './world.js';

/** The longest that a replica leaves the end of a window to the window leader. */
export const LONGEST_GRACE_MILLIS = 100;
/** Between two settles of a key with an even pace. */
const LEAST_BETWEEN_SETTLES_MILLIS = luaNumber('lib/room', 'LEAST_BETWEEN_SETTLES');
/** After the window of a calendar, waiters are served within this time: src/limiter/settle-delay.ts. */
export const SPREAD_MILLIS = 1000;
/** A timer rings in the first whole millisecond of the world in which it is due. */
const ROUNDED_MILLIS = 1;

/** Before time goes on in a world where nothing is late, who is approved has been told. */
export function checkEverybodyIsTold(world: World): void {
  // While a key is held after a loss, nobody says from where on its queue waits.
  if (!world.hasLostMessages && !world.hasLostMemory) {
    for (const client of world.clients.values()) {
      const { name, replica, canWait, request, outcome } = client;
      if (!canWait || outcome !== undefined || !world.isPunctual(replica)) continue;
      const isApproved = !request.isNamed || client.approvedBy !== undefined;
      if (request.approval?.isForgotten === false && isApproved) {
        throw new Violation('who is approved is told', `${name} is not`);
      }
      if (grantedIn(world.stored.last).has(request.id) && request.owner === client) {
        throw new Violation('who is approved is told', `${name} is not`);
      }
      if (client.ranBy !== undefined && request.owner && request.owner !== client) {
        throw new Violation('who is taken over is told', `${name} is not`);
      }
    }
  }
}

/** Before time goes on there, no wait is longer than its limit. */
export function checkWaitsEnd(world: World): void {
  for (const client of world.clients.values()) {
    const { name, replica, outcome, askedAt, maxWaitMillis, answerMillis } = client;
    const { clock } = world.replica(replica)!;
    const longest = clock.worldMillis(maxWaitMillis) + ROUNDED_MILLIS;
    const over = world.now - askedAt - longest - world.restartMillis;
    if (outcome !== undefined || !world.isPunctual(replica)) continue;
    if (over > 0) {
      throw new Violation('a wait ends with its limit', `${name} waits on for ${over} ms`);
    }
    const longestAnswer = clock.worldMillis(answerMillis) + ROUNDED_MILLIS;
    if (world.now - askedAt - world.restartMillis > longestAnswer) {
      throw new Violation('a check is answered in time', `${name} is not told that it waits`);
    }
  }
}

/** What is wrong with the refusal of a client that can wait, if anything is. */
export function refusalFault(world: World, client: SimulatedClient): Violation | undefined {
  const { name, request, reason, maxWaitMillis, replica, keepMillis } = client;
  const { ticket, checks } = request;
  const byReplica = world.replica(replica)!.clock.worldMillis(maxWaitMillis);
  // The longest wait of a kept place has begun with its ticket, perhaps with an earlier check.
  const isKept = keepMillis !== undefined;
  const shortest = (isKept ? Math.min(byReplica, maxWaitMillis) : byReplica) - ROUNDED_MILLIS;
  const askedAt = isKept ? Math.min(...checks.map((check) => check.askedAt)) : client.askedAt;
  // A check that can't wait ends the wait of an earlier one with its id.
  if (reason === 'wait_expired' && !client.canWait && request.isNamed) return undefined;
  if (reason === 'wait_expired' && world.now - askedAt < shortest) {
    return new Violation('a wait is as long as its limit', `${name} is refused before`);
  }
  // One whose place was lost may come too late when it asks again.
  const isNewest = request.newest === client;
  const keepsPlace = isNewest && world.isPunctual(replica) && !world.hasLostMemory;
  if (reason === 'turn_too_late' && ticket !== undefined && keepsPlace) {
    return new Violation('who comes too late has no place', name);
  }
  return undefined;
}

/** Before time goes on, rules that may come into force in mid-window have reached the key of the waiters. */
export function checkRulesAreTaken(world: World): void {
  const { state, waiting } = world.stored.last;
  if (!state || world.hasLostMemory) return;
  const isSet = state.overridden.includes('window');
  for (const [id, place] of waiting) {
    const { replica } = place;
    const { limits, history } = world.replica(replica)!;
    if (isLeftBehind(world, place)) continue;
    const isFixed = state.algorithm.name === 'fixed_window';
    const { algorithm = DEFAULT_ALGORITHM, windowMillis } = limits;
    const hasWindow = isSet || windowMillis === state.window;
    const mayCome = !isFixed || (isSameAlgorithm({ algorithm }, state) && hasWindow);
    // Of rules of the same millisecond, either may be in force.
    if (!mayCome || history.loadedAt <= state.limitsSince || !world.isPunctual(replica)) continue;
    const { further, ofGroups } = state;
    if (areSameFurther([...further, ...ofGroups], limits.further ?? [])) continue;
    throw new Violation('new rules reach those who wait', `${id} waits by others`);
  }
}

/**
 * Before time goes on there, those who wait no more have no place. After a loss, a settle under way may put one back who
 * is told meanwhile.
 */
export function checkNobodyWaitsForNothing(world: World): void {
  if (world.hasLostMemory) return;
  for (const [id, place] of world.stored.last.waiting) checkPlaceIsWanted(world, id, place);
}

/**
 * When time has gone on there, everybody who waits does so for the end of a window that has not come, for a lapse, or for
 * the end of a recovery or a pause. While held approvals take all of a maximum, the end of its window makes no room. A group
 * that is stopped comes back in time if the limits that all share have room.
 * Of several limits into which the head of the queue does not fit, the last that has room counts; if there is none, the
 * first that has more. The judge
 * sees to it that only a replica that was late begins a recovery, since it cannot tell whether Redis was down.
 */
export function checkWindowsEnd(world: World): void {
  const { last } = world.stored;
  const { state, holds, waiting } = last;
  if (!state || world.hasLostMemory) return;
  // Room comes sooner if a hold or a pause ends early, or if a release leaves another limit as the last that has room. A
  // lost message may have told of that.
  const mayComeSooner =
    world.longestHold > 0 ||
    world.longestKeep > 0 ||
    world.longestPause > 0 ||
    world.longestReport > 0 ||
    state.further.length + state.ofGroups.length > 0;
  if (world.hasLostMessages && mayComeSooner) return;
  // A waiter of a lane whose limit is full does not keep those of other lanes waiting.
  if (state.further.some(({ lanes }) => lanes)) return;
  const next = nextWaiter(last);
  const { hits = 1 } = next ?? {};
  const rooms = roomsOfOthers(last, hits);
  for (const [id, place] of waiting) {
    const { replica } = place;
    const { clock } = world.replica(replica)!;
    if (isLeftBehind(world, place)) continue;
    if (!world.isPunctual(replica) || !countsAt(last, place, world.redisNow)) continue;
    // A slow clock's timer was armed when the window began. A fast one asks too early, and learns what is left.
    const longest = (millis: number): number => Math.max(millis, clock.worldMillis(millis));
    const lapses = [...holds.values()].map(
      ({ lapsesAt, millis }) => lapsesAt - millis + longest(millis),
    );
    const { held = 0 } = state.holds ?? {};
    const limits = [
      { ...state, taken: state.approved, wanted: hits, held, isHeldInto: true },
      ...state.further.map(({ windowMillis, maximum, counts, keepsReleased, ...limit }) => ({
        ...limit,
        ...{ window: windowMillis, max: maximum },
        wanted: counts === 'hits' ? hits : 1,
        held: counts === 'hits' ? held : holds.size,
        isHeldInto: !keepsReleased,
      })),
    ].map((limit, i) => {
      const { start, max, taken, wanted, held, stored, report } = limit;
      const window = windowLength(limit);
      const isHeldInto = limit.isHeldInto && stored?.kind !== 'token_bucket';
      const isAllHeld = isHeldInto && held >= max;
      const ofHolds = isHeldInto ? lapses : [];
      const room = rooms[i];
      // A report that ends sooner than the window makes room, and one that ends later makes the window longer.
      const longestReport = Math.max(world.longestReport, window);
      const fixedEnd = report
        ? report.until - longestReport + longest(longestReport)
        : start + longest(window);
      const windowEnd = room ? room.from + longest(room.at - room.from) : fixedEnd;
      return {
        isFull: room ? room.at > room.from : taken + wanted > max,
        windowEnd,
        roomAt: Math.min(...ofHolds, isAllHeld ? Infinity : windowEnd),
      };
    });
    const full = limits.filter(({ isFull }) => isFull);
    const longestStop = Math.max(world.longestWindow, world.longestPause);
    const stopped = [...last.lists.stopped.values()].map(
      ({ key: until }) => until - longestStop + longest(longestStop),
    );
    const fullUntil = full.map((limit) => limit.roomAt);
    const allUntil =
      full.length > 0 ? Math.max(...fullUntil) : Math.min(...limits.map((limit) => limit.roomAt));
    const areAllStopped = !next && stopped.length > 0;
    const roomAt = areAllStopped
      ? Math.max(Math.min(...stopped, ...lapses), ...fullUntil)
      : allUntil;
    const hasCalendar = haveCalendar(state) || haveCalendar(world.replica(replica)!.limits);
    const spreadMillis = hasCalendar ? SPREAD_MILLIS : 0;
    const grace =
      clock.worldMillis(LONGEST_GRACE_MILLIS + LEAST_BETWEEN_SETTLES_MILLIS + spreadMillis) +
      ROUNDED_MILLIS;
    const pausedUntil =
      state.pausedUntil === 0
        ? 0
        : state.pausedUntil - world.longestPause + longest(world.longestPause);
    const over = world.redisNow - Math.max(roomAt, state.recoveryUntil, pausedUntil) - grace;
    if (over > 0)
      throw new Violation(
        limits.some(({ windowEnd }) => windowEnd === roomAt)
          ? 'the end of a window is seen'
          : 'a lapse is seen',
        `${id} waits on for ${over} ms`,
      );
  }
}

/** When each limit that is no fixed window was changed last, and when it has room then, unless a hold ends. */
function roomsOfOthers(
  last: Snapshot,
  hits: number,
): readonly ({ readonly from: number; readonly at: number } | undefined)[] {
  const { state } = last;
  const stored = state ? [state.stored, ...state.further.map((limit) => limit.stored)] : [];
  if (!state || stored.every((each) => each === undefined)) return [];
  const { limits } = Model.restored({ ...last, state }, new Map(), Infinity).instance.approvals;
  return stored.map((counts, i) => {
    if (!counts) return undefined;
    const from = counts.kind === 'sliding_window' ? counts.stepStart : counts.timeMicros / 1000;
    return { from, at: firstRoom(limits[i]!, from, hits) };
  });
}

/** Until something is to be done that takes its time; infinite where nothing is. */
export function millisToNext(world: World): number {
  const dueAt = world.replicas
    .filter(({ isRunning }) => isRunning)
    .map((replica) => {
      const { clock, connection } = replica;
      return Math.min(clock.nextDueAt, connection.nextLimitAt, mendDueAt(world, replica));
    });
  return Math.min(...dueAt) - world.now;
}

/** When a replica has learned at the latest that Redis is back. */
function mendDueAt({ isRedisAway, backAt }: World, { connection }: SimulatedReplica): number {
  return connection.isBroken && !isRedisAway ? backAt + LONGEST_BACKOFF_MILLIS : Infinity;
}

/** Whether nothing is to be done before time goes on. */
export function isQuiet(world: World): boolean {
  const { replicas, isRedisAway } = world;
  return (
    millisToNext(world) > 0 &&
    replicas.every(
      ({ isRunning, hasTicks, connection, mailbox }) =>
        // What was sent arrives, whatever becomes of its sender.
        (connection.firstSent === undefined || isRedisAway) &&
        (!isRunning ||
          !(
            hasTicks ||
            connection.firstAnswered !== undefined ||
            mailbox.hasAsked ||
            mailbox.first !== undefined
          )),
    )
  );
}
