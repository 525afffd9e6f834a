import type { Approvals } from './approvals.js';
import { roomForWaiters } from './limits/room-at.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import type { RulesInForce } from './rules-in-force.js';

/**
 * When the waiters of a key may have room next, in milliseconds of a clock, to the microsecond.
 * @param pausedUntil -Infinity if the key is not paused
 * @param servedAt when a waiter was approved last
 */
export function roomForQueue(
  approvals: Approvals,
  rules: RulesInForce,
  queue: WaitingQueue,
  pausedUntil: number,
  servedAt: number | undefined,
): number {
  const { limits, window } = approvals;
  // What the head of the queue needs, if only that keeps it waiting.
  const isHeadAlone = pausedUntil === -Infinity && approvals.fit({ hits: 1 });
  const hits = (isHeadAlone ? queue.first(1)[0]?.hits : undefined) ?? 1;
  const roomAt = roomForWaiters(limits, { hits, pausedUntil, servedAt });
  const changeAt = rules.limitsChangeAt(window, limits.length);
  return Math.min(roomAt, Math.max(changeAt, pausedUntil));
}
