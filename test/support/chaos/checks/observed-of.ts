import type { LimitInForce } from '../../../../src/limiter/limits.js';
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

/** Whether a limit surely counts an approval: a check that names no lane may be in any. */
export function countsApproval(
  { account }: Pick<Evidence, 'account'>,
  { lanes }: Pick<LimitInForce, 'lanes'>,
  { requestId, lane }: Approval,
): boolean {
  const inQueue = account.lists.get(requestId)?.replace(/^lane:/, '');
  return !lanes || lanes.includes(lane ?? inQueue ?? '');
}
