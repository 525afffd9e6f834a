import type { InstanceDetail, InstanceState, Quota } from '../limiter.js';
import { type ForEachLimit, forEachLimit, type LimitState } from '../limits.js';
import type { Approvals } from './approvals.js';
import { placesIn } from './queue/places.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import type { RulesInForce } from './rules-in-force.js';

/** What is shown of a key, as of its last operation. */
export interface ShownKey {
  readonly key: string;
  readonly approvals: Approvals;
  readonly rules: RulesInForce;
  readonly queue: WaitingQueue;
  /** In the current window of the own limit. */
  readonly denied: number;
  /** -Infinity if the key is not paused. */
  readonly pausedUntil: number;
}

/** Returns a key's state as of now. */
export function stateOf(shown: ShownKey, now: number): InstanceState {
  const { key, approvals, rules, queue, denied, pausedUntil } = shown;
  const { holds, window } = approvals;
  return {
    key,
    limits: limitsAt(approvals, now),
    maxRequestsInQueue: rules.maxRequestsInQueue,
    held: holds?.heldAt(now)?.hits ?? 0,
    denied: now >= window.end ? 0 : denied,
    waiting: queue.size,
    pausedMillis: Math.max(0, pausedUntil - now),
  };
}

/** What nobody has claimed in time counts in no limit, also before an operation gives it back. */
function limitsAt(approvals: Approvals, now: number): ForEachLimit<LimitState> {
  const lapsed = [...(approvals.holds?.unclaimedLapsedBy(now) ?? [])];
  return forEachLimit(approvals.limits, (limit) => {
    if (lapsed.length === 0) return limit.state(now);
    const copy = limit.copy(approvals);
    copy.roll(now, limit.millis);
    for (const id of lapsed) copy.giveBack(id, true);
    return copy.state(now);
  });
}

/** Returns everything about a key as of now. @param mostQueued how many requests of the queue to name */
export function detailOf(shown: ShownKey, now: number, mostQueued: number): InstanceDetail {
  return {
    ...stateOf(shown, now),
    ...placesIn(shown.queue, now, mostQueued),
    overridden: shown.rules.overriddenOf(shown.approvals.window),
    isRecovering: false,
    names: [],
  };
}

/** Returns what a key has left as of its last operation. @param pausedUntil -Infinity if it is not paused */
export function quotaOf({ limits }: Approvals, now: number, pausedUntil: number): Quota {
  return { limits: forEachLimit(limits, (limit) => limit.quota(now, pausedUntil)) };
}
