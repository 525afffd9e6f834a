import { z } from 'zod';

import { shortText } from '../common/short-text.js';
import type { AskedTogether } from '../service/deciding/decide-together.js';
import type { NamedList } from '../service/deciding/lists-of-checks.js';
import { parseKey } from '../service/keys.js';
import { BOUNDS } from '../limiter/bounds.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { CallMessage } from './call-message.js';
import type { KeyOf } from './key-template.js';
import { type Descriptor, type Entry, UNIT_MILLIS } from './messages.js';
import { invalid, validRequest } from './valid-request.js';

/** The entries that name the list of a check, in keys whose rule has such lists. There they are no part of the key. */
const LIST_ENTRIES = [
  { name: 'lane', order: 'lanes', value: z.string() },
  { name: 'group', order: 'fair', value: shortText(BOUNDS.groupBytes) },
] as const;

/** The check of a descriptor, before its key's policy is known. */
export interface Draft extends NamedList {
  readonly key: string;
  readonly hits: number;
  /** Whether the hits are to be given back. */
  readonly isRefund: boolean;
  readonly limit: Descriptor['limit'];
  /** Its index in the request. */
  readonly index: number;
}

/**
 * The drafts of the checks of a request, one for each descriptor, in their order.
 * @throws ServiceError INVALID_PARAMETER or INVALID_KEY_LENGTH
 */
export function draftsOf(
  message: CallMessage,
  keyOf: KeyOf,
  policyOf: (key: string) => Pick<KeyPolicy, 'queueOrder'>,
): Draft[] {
  const { domain, descriptors, ...request } = validRequest(message);
  return descriptors.map(({ entries, limit, hits_addend, is_negative_hits }, index) => {
    const path = `descriptors[${index}].entries`;
    const keyIn = (ofKey: readonly Entry[]): string => parseKey(keyOf(domain, ofKey));
    const { key, ...list } = listNamedIn(entries, path, keyIn, policyOf) ?? { key: keyIn(entries) };
    return {
      key,
      hits: hits_addend?.value ?? Math.max(1, request.hits_addend),
      isRefund: is_negative_hits,
      limit,
      index,
      ...list,
    };
  });
}

/** Whether a descriptor asks without counting anything. */
export function isPeek({ hits }: Pick<AskedTogether, 'hits'>): boolean {
  return hits === 0;
}

/** Whether a descriptor is anything but a check. */
export function isNoCheck({ hits, isRefund }: Draft): boolean {
  return hits === 0 || isRefund;
}

/**
 * The check of a descriptor. It may wait if its key's rule has a `max_wait_millis`.
 * @param millisLeft until Envoy gives up
 * @throws ServiceError INVALID_PARAMETER
 */
export function checkOf(draft: Draft, policy: KeyPolicy, millisLeft: number): AskedTogether {
  const { key, hits, lane, group } = draft;
  if (isPeek(draft)) return { key, lane, group, hits, canWait: false };
  if (draft.isRefund) return { key, lane, group, refund: refundOf(draft, policy), canWait: false };
  const maxWaitMillis = Math.min(policy.maxWaitMillis, Math.floor(millisLeft));
  const check = {
    key,
    maxRequests: maximumOf(draft, policy),
    lane,
    group,
    ...(hits > 1 ? { hits } : {}),
  };
  return maxWaitMillis > 0
    ? { ...check, canWait: true, maxWaitMillis }
    : { ...check, canWait: false };
}

/** Other limits have no window whose hits could be given back. */
function refundOf({ hits, index }: Draft, { limits }: KeyPolicy): number {
  const { name } = limits[0].algorithm;
  if (name === 'fixed_window') return hits;
  throw invalid(
    `descriptors[${index}].is_negative_hits`,
    `be false: the limit of its key is a ${name}, and only fixed windows take hits back`,
  );
}

/**
 * The list that an entry names, and the key that the others make. An entry names a list only if the rule of that key has such
 * lists, so that the keys of all others stay as they were.
 * @param path of the entries, for errors
 * @returns undefined if none does
 * @throws ServiceError INVALID_PARAMETER or INVALID_KEY_LENGTH
 */
function listNamedIn(
  entries: readonly Entry[],
  path: string,
  keyIn: (ofKey: readonly Entry[]) => string,
  policyOf: (key: string) => Pick<KeyPolicy, 'queueOrder'>,
): (NamedList & { readonly key: string }) | undefined {
  for (const { name, order, value } of LIST_ENTRIES) {
    const at = entries.findIndex(({ key }) => key === name);
    const entry = entries[at];
    // Nearly all descriptors name none.
    if (!entry) continue;
    const ofKey = entries.filter(({ key }) => key !== name);
    if (ofKey.length === 0) continue;
    const key = keyIn(ofKey);
    if (policyOf(key).queueOrder?.kind !== order) continue;
    if (entries.length - ofKey.length > 1) throw invalid(path, `have ${name} once`);
    const { error } = value.safeParse(entry.value);
    if (error) throw invalid(`${path}[${at}].value`, `be ${error.issues[0]?.message}`);
    return { key, [name]: entry.value };
  }
  return undefined;
}

/** A descriptor's own limit is an override of the maximum. It can't change the window, of which 0 needs none. */
function maximumOf(
  { limit, index }: Draft,
  { limits: [{ windowMillis }] }: KeyPolicy,
): number | undefined {
  if (!limit) return undefined;
  const { unit, requests_per_unit: maximum } = limit;
  if (maximum === 0 || (unit !== 'UNKNOWN' && UNIT_MILLIS[unit] === windowMillis)) return maximum;
  throw invalid(
    `descriptors[${index}].limit.unit`,
    `be as long as the window of its key (${windowMillis} ms)`,
  );
}
