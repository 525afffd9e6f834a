import type { Quota } from '../../limiter/limiter.js';
import type { Waiter } from '../../limiter/waiter.js';
import { limitsIn, quotaIn } from '../scripts/limits-codec.js';
import type { SettleReply } from '../scripts/settle-codec.js';
import type { Wake } from './wake-channel.js';

/** What Redis tells of a queue. */
export type News = Wake | SettleReply;

/** What the limits have left after these approvals; undefined if that is not known. */
export function quotaOf({ limits, used, millisToRoom }: News): Quota | undefined {
  if (!limits || used === undefined || millisToRoom === undefined) return undefined;
  return quotaIn(limitsIn(limits).limits, used, millisToRoom);
}

/** Until when the approval of a waiter surely counts, by this replica's clock. Infinite if it is not held. */
export type HeldUntil = (waiter: Waiter) => number;

/**
 * @param wokenAt when the wake came, by this replica's clock
 * @param storeTime Redis's time then, or a later one; undefined if it is unknown
 */
export function heldUntilByWake(
  { at }: Wake,
  wokenAt: number,
  storeTime: number | undefined,
): HeldUntil {
  return ({ holdMillis }) => {
    if (holdMillis === undefined) return Infinity;
    if (at === undefined || storeTime === undefined) return -Infinity;
    return wokenAt + at + holdMillis - storeTime;
  };
}

/** @param sentAt when Redis was asked, by this replica's clock */
export function heldUntilByReply({ holdsLeft }: SettleReply, sentAt: number): HeldUntil {
  return ({ claimOrId: claim, holdMillis = Infinity }) =>
    sentAt + (holdsLeft.get(claim) ?? holdMillis);
}
