import type { Approval } from '../ledger.js';
import type { ObservedApproval } from '../../monitor/key-account.js';
import type { Evidence } from './evidence.js';

/** How Redis gave an approval. A request that was approved again was told of the last approval. */
export function observedOf(
  { account }: Pick<Evidence, 'account'>,
  { requestId, endedAt }: Approval,
): ObservedApproval | undefined {
  return account.approvals.get(requestId)?.findLast(({ at }) => at <= endedAt);
}
