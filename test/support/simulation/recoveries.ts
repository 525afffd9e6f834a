import { isDeepStrictEqual } from 'node:util';

import { luaNumber } from '../lua-constants.js';
import type { JudgedCall, JudgedWorld } from './judged-call.js';
import { Violation } from './violation.js';

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
  const begins = (state?.holdUntil ?? 0) > 0 && (stored.state?.holdUntil ?? 0) === 0;
  // For a lease after a step of the clock no caller can know that Redis was up before.
  if (world.now < steppedAt + world.shape.leaseMillis) return;
  if (begins && world.isPunctual(replica)) {
    throw new Violation('a key recovers after a loss only', `${replica} begins a recovery`);
  }
}

/**
 * A renewal changes the caller's lease only, and not if Redis may have been down: a recovery comes first.
 * @returns whether the lease is renewed
 */
export function checkRenewal({ run, stored, after }: JudgedCall, leaseMillis: number): boolean {
  const { replica, now } = run;
  const [was, is] = [stored.leases[replica], after.leases[replica]];
  const expected = was === undefined ? stored.leases : { ...stored.leases, [replica]: is };
  if (!isDeepStrictEqual(after.leases, expected)) {
    throw new Violation('a renewal changes one lease', JSON.stringify(after.leases));
  }
  if (is === was || was === undefined) return false;
  if (was - LEASE_PART_LEFT * leaseMillis < now) {
    throw new Violation('a recovery comes before a renewal', `${replica} was silent`);
  }
  return true;
}
