import { isDeepStrictEqual } from 'node:util';

import { luaNumber } from '../lua-constants.js';
import type { JudgedCall, JudgedWorld } from './judged-call.js';
import { idsOf, keptMillisOf, Violation } from './snapshot.js';

const LEASE_PART_LEFT = luaNumber('lib/recovery', 'LEASE_PART_LEFT');
/** What all replicas are told when Redis seems to have lost the key. */
const MEMORY_LOST = '{"memoryLost":true}';

/**
 * Where Redis is always there and has lost nothing, nobody waits for others to come back.
 * @param steppedAt when Redis's clock went back last, by the world's time
 * @param rememberedUntil until when an approval is remembered of a window that ends then
 */
export function checkRecovery(
  { run: { replica, lowestTicket, now }, stored, after: { state }, messages }: JudgedCall,
  world: JudgedWorld,
  steppedAt: number,
  rememberedUntil: (windowEnd: number) => number,
): void {
  if (world.hasLostMemory) return;
  const granted = world.requestOfTicket(lowestTicket);
  const isRemembered =
    granted?.approval?.isForgotten === false && now < rememberedUntil(granted.approval.windowEnd);
  if (messages.includes(MEMORY_LOST) && isRemembered) {
    throw new Violation('an approval is not taken for a loss', `${granted.id} was approved`);
  }
  const begins = (state?.recoveryUntil ?? 0) > 0 && (stored.state?.recoveryUntil ?? 0) === 0;
  // For a lease after a step of the clock no caller can know that Redis was up before.
  if (world.now < steppedAt + world.shape.leaseMillis) return;
  if (begins && world.isPunctual(replica)) {
    throw new Violation('a key recovers after a loss only', `${replica} begins a recovery`);
  }
}

/**
 * A renewal changes the caller's leases only, and not if Redis may have been down: a recovery comes first.
 * @returns whether the leases are renewed
 */
export function checkRenewal({ run, stored, after }: JudgedCall, leaseMillis: number): boolean {
  const { replica, now } = run;
  if (isDeepStrictEqual(after.leases, stored.leases)) return false;
  // A replica does not look for kept places if it knows of none: one may be of a check that has failed.
  const ids = idsOf(stored, replica).filter((id) => after.leases[id] !== stored.leases[id]);
  const renewed = ids.map((id) => [id, now + leaseMillis + keptMillisOf(id)] as const);
  if (!isDeepStrictEqual(after.leases, { ...stored.leases, ...Object.fromEntries(renewed) })) {
    throw new Violation('a renewal renews the leases of one', JSON.stringify(after.leases));
  }
  const was = Math.min(...ids.map((id) => stored.leases[id]! - keptMillisOf(id)));
  if (was - LEASE_PART_LEFT * leaseMillis < now) {
    throw new Violation('a recovery comes before a renewal', `${replica} was silent`);
  }
  return true;
}
