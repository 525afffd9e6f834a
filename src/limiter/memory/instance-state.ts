import type { InstanceDetail, InstanceState, RequestStatus } from '../limiter.js';
import { forEachLimit } from '../limits.js';
import { MOST_LISTS_SHOWN } from '../queue-order.js';
import type { Approvals } from './approvals.js';
import type { GroupLimits } from './group-limits.js';
import type { RequestRecord } from './named-requests.js';
import { arrivalOf, type Queued } from './queue/waiting-list.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import type { RulesInForce } from './rules-in-force.js';

/** What is shown of a key. */
export interface ShownKey {
  readonly key: string;
  readonly approvals: Approvals;
  /** Undefined if no group has anything to itself. */
  readonly groups: GroupLimits | undefined;
  readonly rules: RulesInForce;
  readonly queue: WaitingQueue;
  /** In the current window of the own limit. */
  readonly denied: number;
  /** -Infinity if the key is not paused. */
  readonly pausedUntil: number;
}

export function stateOf(shown: ShownKey, now: number): InstanceState {
  const { key, approvals, rules, queue, denied, pausedUntil } = shown;
  const limitsOfGroups = approvals.groups?.declared ?? [];
  const hasLimitsOfGroups = limitsOfGroups.length > 0;
  return {
    key,
    limits: forEachLimit(approvals.limits, (limit) => limit.state(now)),
    ...(hasLimitsOfGroups && { limitsOfGroups }),
    maxRequestsInQueue: rules.maxRequestsInQueue,
    held: approvals.holds?.hits ?? 0,
    denied,
    waiting: queue.size,
    pausedMillis: Math.max(0, pausedUntil - now),
  };
}

/** @param mostQueued how many requests of the queue to name */
export function detailOf(shown: ShownKey, now: number, mostQueued: number): InstanceDetail {
  return {
    ...stateOf(shown, now),
    ...placesIn(shown, now, mostQueued),
    ...(shown.groups &&
      shown.groups.declared.length > 0 && { groups: shown.groups.fullest(MOST_LISTS_SHOWN) }),
    overridden: shown.rules.overriddenOf(shown.approvals.window),
    isRecovering: false,
    names: [],
  };
}

/**
 * What a request is that does not wait; undefined if it is unknown, or over. `lua/status.lua` has the same rules.
 * @param approvals of its key, as of now
 * @param record of the request, if its caller has chosen the id
 */
export function approvalStatus(
  now: number,
  requestId: string,
  approvals: Approvals,
  record: Pick<RequestRecord, 'state'> | undefined,
): RequestStatus | undefined {
  const hold = approvals.holds?.get(requestId);
  if (hold) return { status: 'approved', holdMillis: hold.lapsesAt - now };
  // A check with a chosen id gets the same approval also after its window.
  const isApproved = record ? record.state === 'approved' : approvals.counts(now, requestId);
  return isApproved ? { status: 'approved' } : undefined;
}

/**
 * Returns who waits. All places are those of this process.
 * @param now in milliseconds of the clock by which they came
 * @param most of the waiting requests, those whose turns come first
 */
function placesIn(
  shown: ShownKey,
  now: number,
  most: number,
): Pick<InstanceDetail, 'queue' | 'lists' | 'listCount' | 'replicas'> {
  const { queue } = shown;
  const places = queue.size;
  const lists = queue.lists();
  const longest = lists
    .toSorted((a, b) => b.size - a.size || (a.head?.ticket ?? 0) - (b.head?.ticket ?? 0))
    .slice(0, MOST_LISTS_SHOWN);
  return {
    queue: queue
      .first(most)
      .map((waiter) => ({ replica: undefined, waitedMillis: waitedMillis(waiter, now) })),
    // Nothing of a queue with one list.
    ...(lists.length > 0 && {
      lists: longest.map(({ kind, name, size, head }) => ({
        kind,
        name,
        waiting: size,
        oldestMillis: waitedMillis(head, now),
        ...(kind === 'group' && stopOf(shown, now, name, head?.hits)),
      })),
      listCount: lists.length,
    }),
    replicas: places === 0 ? [] : [{ replica: undefined, places, leaseMillis: undefined }],
  };
}

/** What stops a group whose head finds room in what all share. */
function stopOf({ groups, approvals, pausedUntil }: ShownKey, now: number, name: string, hits = 1) {
  const isOpen = pausedUntil <= now && approvals.fit({ hits });
  return isOpen && groups?.reasonOfStop(name, hits);
}

function waitedMillis(waiter: Queued | undefined, now: number): number {
  return waiter ? Math.max(0, now - arrivalOf(waiter)) : 0;
}
