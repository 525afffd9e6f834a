import { overlaps } from '../faults/fault.js';
import { type Approval, describeEntry } from '../ledger.js';
import { REPLICA_LEASE_MILLIS } from '../limits.js';
import type { ObservedApproval } from '../../monitor/key-account.js';
import type { Evidence } from './evidence.js';

/** The waiters that were approved, by key, and by lane or group. */
function waitersByList({ ledger, account }: Evidence): Approval[][] {
  const byList = new Map<string, Approval[]>();
  for (const approval of ledger.approvals) {
    if (approval.kind === 'check') continue;
    const list = `${approval.key} ${account.lists.get(approval.requestId) ?? ''}`;
    const others = byList.get(list);
    if (others) others.push(approval);
    else byList.set(list, [approval]);
  }
  return [...byList.values()];
}

/** A replica renews its lease when a third of it is over. With the machine, it may miss the rest. */
const LEASE_OUTLASTING_MILLIS = (REPLICA_LEASE_MILLIS * 2) / 3;
/** A replica that could run for less than half of that time, when it had work to do, may miss the end of its lease. */
const WITHHELD_MILLIS = LEASE_OUTLASTING_MILLIS / 2;

/** Whether a replica was so out of touch while a request waited that others may go before it. */
export function mayBePassedOver(
  { faults, standstills, withheld }: Evidence,
  { key, replica, sentAt, endedAt }: Approval,
): boolean {
  if (standstills.longestWithin(sentAt, endedAt) >= LEASE_OUTLASTING_MILLIS) return true;
  const withheldMillis = withheld.mostWithin(replica, sentAt, endedAt, LEASE_OUTLASTING_MILLIS);
  if (withheldMillis >= WITHHELD_MILLIS) return true;
  return faults.some((fault) => {
    // All leases run out in a longer move, and whoever is put back first is first.
    const outlastsLeases =
      fault.moves === key && fault.endedAt - fault.beganAt >= REPLICA_LEASE_MILLIS;
    const isOutOfTouch = fault.isolates?.includes(replica) === true || fault.loses !== undefined;
    return (outlastsLeases || isOutOfTouch) && overlaps(fault, sentAt, endedAt);
  });
}

/** Describes the waiters that another waiter of their list overtook, by the order in which Redis queued and approved them. */
export function overtakenInRedis(evidence: Evidence): string[] {
  const { tickets, approvals } = evidence.account;
  return waitersByList(evidence).flatMap((waiters) => {
    const queued = waiters
      .flatMap((approval) => {
        const ticket = tickets.get(approval.requestId);
        const served = firstServed(approvals.get(approval.requestId));
        return ticket === undefined || !served ? [] : [{ approval, ticket, servedAt: served.at }];
      })
      .sort((a, b) => b.ticket - a.ticket);
    // From the last ticket on, the earliest that anybody after it was served.
    let earliest: (typeof queued)[number] | undefined;
    return queued.flatMap((waiter) => {
      const overtaking = earliest && earliest.servedAt < waiter.servedAt ? earliest : undefined;
      if (!earliest || waiter.servedAt < earliest.servedAt) earliest = waiter;
      if (!overtaking || mayBePassedOver(evidence, waiter.approval)) return [];
      return [
        `${describeEntry(waiter.approval)}, ticket ${waiter.ticket}, served at ${waiter.servedAt}, ` +
          `was overtaken by ${describeEntry(overtaking.approval)}, ticket ${overtaking.ticket}, ` +
          `served at ${overtaking.servedAt}`,
      ];
    });
  });
}

/** When a waiter was approved from the queue for the first time. */
export function firstServed(
  approvals: readonly ObservedApproval[] | undefined,
): ObservedApproval | undefined {
  return approvals?.find(({ isFromQueue }) => isFromQueue);
}
