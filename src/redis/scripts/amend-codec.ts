import type { Amended } from '../../limiter/limiter.js';

/** What `lua/amend.lua` replies if the approval counts in its window only. */
const OF_WINDOW = -1;
/** What it replies if there is no such approval. */
const NOT_FOUND = -2;

/** @returns undefined if there is no such approval */
export function decodeAmended(reply: unknown): Amended | undefined {
  if (reply === NOT_FOUND) return undefined;
  return reply === OF_WINDOW ? {} : { holdMillis: Number(reply) };
}
