import { BOUNDS } from '../../limiter/bounds.js';
import type { Amended, Amendment, RejectedAmendment } from '../../limiter/limiter.js';

/** What `lua/amend.lua` replies, unless it is the time until the hold lapses. */
export const REPLY = {
  ofWindow: -1,
  notFound: -2,
  holdTooLong: -3,
  /** Less the most hits that the approval may get. */
  tooManyHits: -4,
} as const;

/** The arguments of `lua/amend.lua` that are its own. */
export function encodeAmendment(requestId: string, amendment: Amendment): (string | number)[] {
  const { hits = '', holdMillis = '', maxHits = '' } = amendment;
  const { maxHoldMillis = BOUNDS.holdMillis.max } = amendment;
  return [requestId, hits, holdMillis, maxHits, maxHoldMillis];
}

/** @returns undefined if there is no such approval */
export function decodeAmended(reply: unknown): Amended | RejectedAmendment | undefined {
  const number = Number(reply);
  if (number <= REPLY.tooManyHits) return { rejected: 'hits', maxHits: REPLY.tooManyHits - number };
  if (number === REPLY.holdTooLong) return { rejected: 'hold' };
  if (number === REPLY.notFound) return undefined;
  return number === REPLY.ofWindow ? {} : { holdMillis: number };
}
