import type { RequestStatus } from '../limiter.js';
import type { Approvals } from './approvals.js';
import type { RequestRecord } from './known-requests.js';

/**
 * What a request is that does not wait; undefined if it is unknown, or over. `lua/status.lua` has the same rules.
 * @param approvals of its key, as of now
 * @param record of the request, if its caller has chosen the id
 */
export function approvalStatus(
  now: number,
  requestId: string,
  approvals: Approvals,
  record: RequestRecord | undefined,
): RequestStatus | undefined {
  const lapse = approvals.holds?.lapseOf(requestId);
  if (lapse !== undefined) return { status: 'approved', holdMillis: lapse - now };
  // A check with a chosen id gets the same approval also after its window.
  const isApproved = record ? record.state === 'approved' : approvals.counts(now, requestId);
  return isApproved ? { status: 'approved' } : undefined;
}
