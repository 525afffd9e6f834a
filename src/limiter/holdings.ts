import { createHash } from 'node:crypto';

import type { Holding } from './limiter.js';

/** The most held approvals of a key that are shown. */
export const MOST_HOLDINGS = 100;
/** Of a key with more held approvals, those to show are chosen among this number. */
export const MOST_LOOKED_AT = 1000;

/** The hex digits of a handle, enough that no two approvals of a key have the same by chance. */
const HANDLE_LENGTH = 16;

/** A held approval, with the id that only its caller may know. */
export interface HeldApproval extends Omit<Holding, 'handle'> {
  readonly requestId: string;
}

/** Returns what names a held approval of a key, from which nobody can tell its request id. */
export function handleOf(key: string, requestId: string): string {
  // No request id has a line break, so that no two pairs are the same text.
  const text = `${requestId}\n${key}`;
  return createHash('sha256').update(text).digest('hex').slice(0, HANDLE_LENGTH);
}

/** Finds a held approval of a key by its handle. */
export function findHeld(
  key: string,
  held: Iterable<HeldApproval>,
  handle: string,
): HeldApproval | undefined {
  for (const one of held) if (handleOf(key, one.requestId) === handle) return one;
  return undefined;
}

/** Returns what is shown of the held approvals of a key: those that lapse first, of the first ones that are given. */
export function toHoldings(key: string, held: Iterable<HeldApproval>): Holding[] {
  const lookedAt: HeldApproval[] = [];
  for (const one of held) {
    if (lookedAt.push(one) === MOST_LOOKED_AT) break;
  }
  return lookedAt
    .map(({ requestId, ...shown }) => ({ handle: handleOf(key, requestId), ...shown }))
    .sort((a, b) => a.lapseMillis - b.lapseMillis || (a.handle < b.handle ? -1 : 1))
    .slice(0, MOST_HOLDINGS);
}
