import { isCountedAlone } from '../../monitor/listed-turns.js';
import { type Approval, describeEntry } from '../ledger.js';
import { LANES } from '../limits.js';
import type { Evidence } from './evidence.js';
import { firstServed, mayBePassedOver } from './fifo.js';
import { observedOf } from './observed-of.js';

/**
 * Describes the heads of lanes that a check passed which was approved at once, though it came too late for that: by more
 * than the difference of the head starts. In its own lane it passes nobody.
 */
export function passedByNewcomers(evidence: Evidence): string[] {
  const waiters = new Map(evidence.ledger.approvals.map((each) => [each.requestId, each]));
  return evidence.ledger.approvals.flatMap((newcomer) => {
    const observed = observedOf(evidence, newcomer);
    const headStart = LANES[newcomer.lane ?? ''];
    // A check that names no lane is in the last one, which the rules may change.
    if (!observed || headStart === undefined) return [];
    const limits = [...observed.inForce.values()].map(({ limit }) => limit);
    return observed.waited.flatMap(({ id, arrival, list }) => {
      const waiter = waiters.get(id);
      if (!waiter || list.kind !== 'lane' || !isServedAfter(evidence, id, observed.at)) return [];
      const isBefore =
        list.name === newcomer.lane || arrival - list.headStartMillis < observed.at - headStart;
      if (!isBefore || isCountedAlone(limits, list.name, newcomer.lane!)) return [];
      return mayBePassedOver(evidence, waiter) ? [] : [describe(newcomer, waiter, list.name)];
    });
  });
}

function isServedAfter({ account }: Evidence, id: string, at: number): boolean {
  const served = firstServed(account.approvals.get(id));
  return served !== undefined && served.at > at;
}

function describe(newcomer: Approval, waiter: Approval, lane: string): string {
  return (
    `${describeEntry(newcomer)}, in the lane ${newcomer.lane}, was approved at once, ` +
    `before ${describeEntry(waiter)}, which waited in the lane ${lane}`
  );
}
