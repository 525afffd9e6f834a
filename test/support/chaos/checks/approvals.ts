import { describeEntry } from '../ledger.js';
import type { Evidence } from './evidence.js';

/** What clients were told that they may do, and Redis knows nothing of. */
export function unfoundedApprovals({ ledger, account }: Evidence): string[] {
  return ledger.approvals
    .filter(
      ({ requestId, sentAt, endedAt }) =>
        !account.approvals.has(requestId) && account.wasWatched(sentAt, endedAt),
    )
    .map((entry) => `${describeEntry(entry)}: no script has approved it`);
}
