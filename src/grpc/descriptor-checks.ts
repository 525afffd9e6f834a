import { z } from 'zod';

import { type Range, shortText } from '../common/schemas.js';
import { BOUNDS } from '../limiter/bounds.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { NamedList } from '../service/deciding/lists-of-checks.js';
import { invalidParameter } from '../service/errors.js';
import { parseKey } from '../service/deciding/parameter-rights.js';
import type { AskedTogether } from './decide-together.js';
import type { KeyOf } from './key-template.js';
import { type CallMessage, NOT_UTF8, UnreadableMessage } from './message-codec.js';
import { type Descriptor, type Entry, type RateLimitRequest, UNIT_MILLIS } from './messages.js';
import { kindOf } from '../limiter/kinds/kinds.js';

/** The entries that name the list of a check, in keys whose rule has such lists. There they are no part of the key. */
const LIST_ENTRIES = {
  lane: {
    isIn: (order: KeyPolicy['queueOrder']) => order?.lanes !== undefined,
    value: z.string(),
  },
  group: {
    isIn: (order: KeyPolicy['queueOrder']) => order?.kind === 'fair',
    value: shortText(BOUNDS.groupBytes),
  },
};
/** What a descriptor may name together: more first. */
const NAMED_TOGETHER = [['lane', 'group'], ['lane'], ['group']] as const;

/** The check of a descriptor, before its key's policy is known. */
export interface Draft extends NamedList {
  readonly key: string;
  readonly hits: number;
  /** Whether the hits are to be given back. */
  readonly isRefund: boolean;
  readonly limit: Descriptor['limit'];
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
  const { domain, descriptors, hits_addend: hitsOfAll } = validRequest(message);
  return descriptors.map(({ entries, limit, hits_addend, is_negative_hits }, index) => {
    const keyIn = (ofKey: readonly Entry[]): string => parseKey(keyOf(domain, ofKey));
    const named = listNamedIn(entries, index, keyIn, policyOf);
    return {
      key: named?.key ?? keyIn(entries),
      lane: named?.lane,
      group: named?.group,
      hits: hits_addend?.value ?? Math.max(1, hitsOfAll),
      isRefund: is_negative_hits,
      limit,
      index,
    };
  });
}

/** Whether a descriptor asks without counting anything. */
export function isPeek({ hits }: Pick<AskedTogether, 'hits'>): boolean {
  return hits === 0;
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
  const canWait = maxWaitMillis > 0;
  return {
    key,
    lane,
    group,
    maxRequests: maximumOf(draft, policy),
    hits: hits > 1 ? hits : undefined,
    canWait,
    maxWaitMillis: canWait ? maxWaitMillis : undefined,
  };
}

/** Other limits have no window whose hits could be given back. */
function refundOf({ hits, index }: Draft, { limits }: KeyPolicy): number {
  const { algorithm } = limits[0];
  if (kindOf(algorithm).hasBoundary) return hits;
  throw invalidParameter(
    `descriptors[${index}].is_negative_hits`,
    `be false: the limit of its key is a ${algorithm.name}, and only fixed windows take hits back`,
  );
}

/**
 * The list that an entry names, and the key that the others make. An entry names a list only if the rule of that key has such
 * lists, so that the keys of all others stay as they were.
 * @param index of the descriptor, for errors
 * @returns undefined if none does
 * @throws ServiceError INVALID_PARAMETER or INVALID_KEY_LENGTH
 */
function listNamedIn(
  entries: readonly Entry[],
  index: number,
  keyIn: (ofKey: readonly Entry[]) => string,
  policyOf: (key: string) => Pick<KeyPolicy, 'queueOrder'>,
): (NamedList & { readonly key: string }) | undefined {
  // Nearly all descriptors name none.
  if (!entries.some(({ key }) => key in LIST_ENTRIES)) return undefined;
  for (const names of NAMED_TOGETHER) {
    const ofKey = entries.filter(({ key }) => !names.some((name) => name === key));
    const hasAll = names.every((name) => entries.some(({ key }) => key === name));
    if (!hasAll || ofKey.length === 0) continue;
    const key = keyIn(ofKey);
    const order = policyOf(key).queueOrder;
    if (!names.every((name) => LIST_ENTRIES[name].isIn(order))) continue;
    const named: Partial<Record<(typeof names)[number], string>> = {};
    for (const name of names) named[name] = valueOf(name, entries, index);
    return { key, ...named };
  }
  return undefined;
}

/** The value of an entry that names a list. @throws ServiceError INVALID_PARAMETER */
function valueOf(
  name: keyof typeof LIST_ENTRIES,
  entries: readonly Entry[],
  index: number,
): string {
  const path = `descriptors[${index}].entries`;
  const [at = 0, ...others] = entries.flatMap(({ key }, i) => (key === name ? i : []));
  if (others.length > 0) throw invalidParameter(path, `have ${name} once`);
  const { error, data } = LIST_ENTRIES[name].value.safeParse(entries[at]?.value);
  if (error) throw invalidParameter(`${path}[${at}].value`, `be ${error.issues[0]?.message}`);
  return data;
}

/** A descriptor's own limit is an override of the maximum. It can't change the window, of which 0 needs none. */
function maximumOf(
  { limit, index }: Draft,
  { limits: [{ windowMillis }] }: KeyPolicy,
): number | undefined {
  if (!limit) return undefined;
  const { unit, requests_per_unit: maximum } = limit;
  if (maximum === 0 || (unit !== 'UNKNOWN' && UNIT_MILLIS[unit] === windowMillis)) return maximum;
  throw invalidParameter(
    `descriptors[${index}].limit.unit`,
    `be as long as the window of its key (${windowMillis} ms)`,
  );
}

/** Envoy's routes have a few descriptors. Each is a check, and all checks of a request are decided at once. */
const MAX_DESCRIPTORS = 100;

/**
 * The request in a message. Types are those of the protocol; this checks values, without a schema: to go through one would cost
 * a call more than its decision.
 * @throws ServiceError INVALID_PARAMETER that names the first field that is wrong
 */
function validRequest(message: CallMessage): RateLimitRequest {
  const request = requestIn(message);
  const { domain, descriptors, hits_addend: hits } = request;
  demandName('domain', domain);
  if (descriptors.length === 0)
    throw invalidParameter('descriptors', 'have at least one descriptor');
  if (descriptors.length > MAX_DESCRIPTORS) {
    throw invalidParameter('descriptors', `have at most ${MAX_DESCRIPTORS} descriptors`);
  }
  descriptors.forEach(demandDescriptor);
  demandAtMost(BOUNDS.hits, 'hits_addend', hits);
  return request;
}

function requestIn(message: CallMessage): RateLimitRequest {
  try {
    return message.take();
  } catch (error) {
    if (error instanceof UnreadableMessage) throw invalidParameter('the message', error.message);
    throw error;
  }
}

function demandDescriptor({ entries, limit, hits_addend }: Descriptor, index: number): void {
  const path = (field: string): string => `descriptors[${index}].${field}`;
  if (entries.length === 0) throw invalidParameter(path('entries'), 'have at least one entry');
  entries.forEach(({ key, value }, i) => {
    if (key === '' || key === NOT_UTF8) demandName(path(`entries[${i}].key`), key);
    if (value === NOT_UTF8) demandText(path(`entries[${i}].value`), value);
  });
  // A limit of 0 denies all. An error would let the request pass a gateway that fails open.
  if (limit) {
    demandAtMost(BOUNDS.maxRequests, path('limit.requests_per_unit'), limit.requests_per_unit);
  }
  // 0 asks without counting.
  if (hits_addend) demandAtMost(BOUNDS.hits, path('hits_addend.value'), hits_addend.value);
}

function demandName(parameter: string, text: string): void {
  if (text === '') throw invalidParameter(parameter, 'not be empty');
  demandText(parameter, text);
}

function demandText(parameter: string, text: string): void {
  if (text === NOT_UTF8) throw invalidParameter(parameter, 'be valid UTF-8');
}

function demandAtMost({ max }: Range, parameter: string, value: number): void {
  if (value > max) throw invalidParameter(parameter, `be at most ${max}`);
}
