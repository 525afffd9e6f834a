import type { RequestStatus } from '../../limiter/limiter.js';

/** What `lua/status.lua` replies. */
type StatusReply =
  | readonly []
  | readonly ['waiting', position: number, microsToTurn: number]
  | readonly ['approved', millisToLapse?: number];

/** @returns undefined if the request is unknown, or over */
export function decodeStatus(reply: unknown): RequestStatus | undefined {
  const [status, ...values] = reply as StatusReply;
  if (status === 'waiting') {
    const [position = 1, microsToTurn = 0] = values;
    return { status, position, waitMillis: microsToTurn / 1000 };
  }
  const [holdMillis] = values;
  return status && (holdMillis === undefined ? { status } : { status, holdMillis });
}
