import type { World } from './world.js';
import { Violation } from './violation.js';

/** The longest that a replica leaves the end of a window to the window leader. */
const LONGEST_GRACE_MILLIS = 100;
/** What clocks are out by, at the most, over the longest window, and what is rounded. */
const DRIFT_MILLIS = 100;

/** Before time goes on in a world where nothing is late, who is approved has been told. */
export function checkEverybodyIsTold(world: World): void {
  // While a key is held after a loss, nobody says from where on its queue waits.
  if (!world.hasLostMessages && !world.hasLostMemory) {
    for (const { name, replica, canWait, approval, outcome } of world.clients.values()) {
      if (
        canWait &&
        approval?.isForgotten === false &&
        outcome === undefined &&
        world.isPunctual(replica)
      ) {
        throw new Violation('who is approved is told', `${name} is not`);
      }
    }
  }
}

/** When time has gone on there, everybody who waits does so for the end of a window that has not come. */
export function checkWindowsEnd(world: World): void {
  const { state, waiting, leases } = world.stored.last;
  if (!state || world.hasLostMemory) return;
  const servedUntil = state.start + state.window + LONGEST_GRACE_MILLIS + DRIFT_MILLIS;
  if (world.redisNow <= Math.max(servedUntil, state.holdUntil + DRIFT_MILLIS)) return;
  for (const [id, { replica }] of waiting) {
    if (!world.isPunctual(replica) || (leases[replica] ?? 0) <= world.redisNow) continue;
    throw new Violation(
      'the end of a window is seen',
      `${id} waits on for ${world.redisNow - servedUntil} ms`,
    );
  }
}

/** Whether nothing is to be done before time goes on. */
export function isQuiet({ replicas, isRedisAway, now }: World): boolean {
  return replicas.every(
    ({ isRunning, hasTicks, connection, mailbox, clock }) =>
      !isRunning ||
      !(
        hasTicks ||
        (connection.firstSent !== undefined && !isRedisAway) ||
        connection.firstAnswered !== undefined ||
        mailbox.hasAsked ||
        mailbox.first !== undefined ||
        clock.nextDueAt <= now
      ),
  );
}
