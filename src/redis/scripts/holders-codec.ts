import type { HeldApproval } from '../../limiter/holdings.js';
import type { KeyNames } from '../shared/key-names.js';

/** Some of the held approvals of a key. */
export interface PageOfHolds {
  /** Of the next page; undefined after the last one. */
  readonly next: string | undefined;
  readonly held: readonly HeldApproval[];
}

/** The cursor of the first page. */
export const FIRST_PAGE = '0';
/** The next page of the last one. */
const NO_PAGE = '0';
const VALUES_PER_HOLD = 5;

/** The KEYS of `lua/holders.lua`. */
export function keysOfHolders({ state, records, lapses }: KeyNames): string[] {
  return [state, records, lapses];
}

/**
 * @param reply of `lua/holders.lua`
 * @throws Error if it is no such reply
 */
export function decodeHolders(reply: unknown): PageOfHolds {
  const [next, ...values] = Array.isArray(reply) ? (reply as unknown[]) : [];
  if (typeof next !== 'string') throw new Error('the reply of holders has no cursor');
  const held = Array.from({ length: values.length / VALUES_PER_HOLD }, (_, i) => {
    const [requestId, hits, lapseMillis, heldMillis, holder] = values.slice(
      i * VALUES_PER_HOLD,
    ) as [string, number, number, number, string];
    const isNamed = holder !== '';
    return {
      requestId,
      holder: isNamed ? holder : undefined,
      heldMillis: isNamed ? heldMillis : undefined,
      lapseMillis,
      hits,
    };
  });
  return { next: next === NO_PAGE ? undefined : next, held };
}
