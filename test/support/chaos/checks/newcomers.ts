import type { ObservedApproval } from '../../monitor/key-account.js';
import { isCountedAlone } from '../../monitor/listed-turns.js';
import type { AccountedWaiter } from '../../turns-account.js';
import { type Approval, describeEntry } from '../ledger.js';
import { LANES } from '../limits.js';
import type { Evidence } from './evidence.js';
import { firstServed, mayBePassedOver } from './fifo.js';
import { observedOf } from './observed-of.js';

/**
 * Describes the heads of lanes that a check passed which was approved at once, though it came too late for that: by more
 * than the difference of the head starts. In its own lane or group it passes nobody.
 */
export function passedByNewcomers(evidence: Evidence): string[] {
  const waiters = new Map(evidence.ledger.approvals.map((each) => [each.requestId, each]));
  return evidence.ledger.approvals.flatMap((newcomer) => {
    const observed = observedOf(evidence, newcomer);
    if (!observed) return [];
    return observed.waited.flatMap((head) => {
      const waiter = waiters.get(head.id);
      if (!waiter || !isServedAfter(evidence, head.id, observed.at)) return [];
      if (!isBefore(head, newcomer, observed)) return [];
      return mayBePassedOver(evidence, waiter) ? [] : [describe(newcomer, waiter, head)];
    });
  });
}

/** Whether a head has its turn before a check, which names its lane or group: without a name, the rules may change its list. */
function isBefore(
  { arrival, list }: AccountedWaiter,
  { lane = '', group }: Approval,
  { at, inForce }: ObservedApproval,
): boolean {
  if (list.kind === 'group') return list.name === group;
  const headStart = LANES[lane];
  if (list.kind !== 'lane' || headStart === undefined) return false;
  const limits = [...inForce.values()].map(({ limit }) => limit);
  if (isCountedAlone(limits, list.name, lane)) return false;
  return list.name === lane || arrival - list.headStartMillis < at - headStart;
}

function isServedAfter({ account }: Evidence, id: string, at: number): boolean {
  const served = firstServed(account.approvals.get(id));
  return served !== undefined && served.at > at;
}

function describe(newcomer: Approval, waiter: Approval, { list }: AccountedWaiter): string {
  const name = list.kind === 'group' ? newcomer.group : newcomer.lane;
  return (
    `${describeEntry(newcomer)}, in the ${list.kind} ${name}, was approved at once, ` +
    `before ${describeEntry(waiter)}, which waited in the ${list.kind} ${list.name}`
  );
}
