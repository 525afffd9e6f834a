import { BOUNDS } from '../../limiter/bounds.js';
import type { Amended, Amendment, RejectedAmendment } from '../../limiter/limiter.js';

/** What `lua/amend.lua` replies if the approval counts in its window only. */
const OF_WINDOW = -1;
/** What it replies if there is no such approval. */
const NOT_FOUND = -2;
/** What it replies if the hold is too long to be renewed. */
const HOLD_TOO_LONG = -3;
/** What it replies, less the most hits that the approval may get, if it would get more. */
const TOO_MANY_HITS = -4;

/** The arguments of `lua/amend.lua` that are its own. */
export function encodeAmendment(requestId: string, amendment: Amendment): (string | number)[] {
  const { hits = '', holdMillis = '', maxHits = '' } = amendment;
  const { maxHoldMillis = BOUNDS.holdMillis.max } = amendment;
  return [requestId, hits, holdMillis, maxHits, maxHoldMillis];
}

/** @returns undefined if there is no such approval */
export function decodeAmended(reply: unknown): Amended | RejectedAmendment | undefined {
  const number = Number(reply);
  if (number <= TOO_MANY_HITS) return { rejected: 'hits', maxHits: TOO_MANY_HITS - number };
  if (number === HOLD_TOO_LONG) return { rejected: 'hold' };
  if (number === NOT_FOUND) return undefined;
  return number === OF_WINDOW ? {} : { holdMillis: number };
}
