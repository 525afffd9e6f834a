import type { RequestStatus } from '../../limiter/limiter.js';

/** What `lua/status.lua` replies for each request. */
type StatusReply =
  | readonly []
  | readonly ['waiting', position: number, microsToTurn: number]
  | readonly ['approved', millisToLapse?: number];

/** For each request, in their order; undefined if it is unknown, or over. */
export type Statuses = readonly (RequestStatus | undefined)[];

export function decodeStatuses(reply: unknown): Statuses {
  return (reply as readonly StatusReply[]).map(decodeStatus);
}

function decodeStatus([status, ...values]: StatusReply): RequestStatus | undefined {
  if (status === 'waiting') {
    const [position = 1, microsToTurn = 0] = values;
    return { status, position, waitMillis: microsToTurn / 1000 };
  }
  const [holdMillis] = values;
  return status && (holdMillis === undefined ? { status } : { status, holdMillis });
}
