import { lossesIn } from '../faults/fault.js';
import { describeEntry, type Entry } from '../ledger.js';
import type { Evidence } from './evidence.js';

/** The approvals that were given in a pause which no other request may have ended. */
export function approvedInPauses(evidence: Evidence): string[] {
  const { entries, approvals } = evidence.ledger;
  const pauses = entries.filter(({ kind }) => kind === 'pause');
  return pauses.flatMap((pause) => {
    const { key, sentAt, endedAt = Infinity, status, pauseMillis = 0 } = pause;
    const to = sentAt + pauseMillis;
    if (status !== 200 || endedAt >= to) return [];
    if (lossesIn(evidence.faults, sentAt, to).length > 0) return [];
    const isChanged = pauses.some((other) => other !== pause && mayChange(other, pause, to));
    if (isChanged) return [];
    return approvals.flatMap((approval) => {
      if (approval.key !== key) return [];
      const observed = evidence.account.approvals.get(approval.requestId) ?? [];
      const inPause = observed.find(
        ({ at, mayBeRenewal }) => !mayBeRenewal && at > endedAt && at < to,
      );
      if (!inPause) return [];
      return [`${describeEntry(approval)} was approved at ${inPause.at}, paused until ${to}`];
    });
  });
}

function mayChange(other: Entry, { key, sentAt }: Entry, to: number): boolean {
  return other.key === key && other.sentAt <= to && (other.endedAt ?? Infinity) >= sentAt;
}
