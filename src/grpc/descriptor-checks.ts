import { z } from 'zod';

import { pathText } from '../common/path-text.js';
import { shortText } from '../common/short-text.js';
import type { AskedCheck, NamedList } from '../service/deciding/lists-of-checks.js';
import { parseKey } from '../service/keys.js';
import { type ServiceError, serviceError } from '../service/service-error.js';
import { BOUNDS } from '../limiter/bounds.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { CallMessage } from './call-message.js';
import type { KeyOf } from './key-template.js';
import { type Descriptor, type Entry, type RateLimitRequest, UNIT_MILLIS } from './messages.js';
import { NOT_UTF8, UnreadableMessage } from './strict-reader.js';

/** Envoy's routes have a few descriptors. Each is a check, and all checks of a request are decided at once. */
const MAX_DESCRIPTORS = 100;

const text = z.string().refine((given) => given !== NOT_UTF8, 'be valid UTF-8');
const name = text.min(1, 'not be empty');
const ENTRY_PARTS = [
  ['key', name],
  ['value', text],
] as const;
/** The entries that name the list of a check, in keys whose rule has such lists. There they are no part of the key. */
const LIST_ENTRIES = [
  { name: 'lane', order: 'lanes', value: z.string() },
  { name: 'group', order: 'fair', value: shortText(BOUNDS.groupBytes) },
] as const;
const hits = z.number().max(BOUNDS.hits.max, `be at most ${BOUNDS.hits.max}`);

/** Reports the first invalid entry only: a list of all would take the longer, the more there are. */
const entries = z.custom<readonly Entry[]>().superRefine((given, context) => {
  if (given.length === 0) context.addIssue('have at least one entry');
  for (const [index, entry] of given.entries()) {
    for (const [part, schema] of ENTRY_PARTS) {
      const { error } = schema.safeParse(entry[part]);
      if (!error) continue;
      const message = error.issues[0]?.message;
      context.addIssue({ code: 'custom', path: [index, part], message });
      return;
    }
  }
});

const descriptorSchema = z.object({
  entries,
  limit: z
    .object({
      requests_per_unit: z
        .number()
        .min(BOUNDS.maxRequests.min, `be at least ${BOUNDS.maxRequests.min}`)
        .max(BOUNDS.maxRequests.max, `be at most ${BOUNDS.maxRequests.max}`),
    })
    .nullable(),
  hits_addend: z
    .object({ value: hits.min(BOUNDS.hits.min, `be at least ${BOUNDS.hits.min}`) })
    .nullable(),
});

const requestSchema = z.object(
  {
    domain: name,
    descriptors: z
      .array(z.unknown())
      .min(1, 'have at least one descriptor')
      .max(MAX_DESCRIPTORS, `have at most ${MAX_DESCRIPTORS} descriptors`)
      .pipe(z.array(descriptorSchema)),
    hits_addend: hits,
  },
  'be a RateLimitRequest',
);

/** The check of a descriptor, before its key's policy is known. */
export interface Draft extends NamedList {
  readonly key: string;
  readonly hits: number;
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
  const { domain, descriptors, ...request } = requestIn(message);
  return descriptors.map(({ entries, limit, hits_addend }, index) => {
    const path = `descriptors[${index}].entries`;
    const keyIn = (ofKey: readonly Entry[]): string => parseKey(keyOf(domain, ofKey));
    const { key, ...list } = listNamedIn(entries, path, keyIn, policyOf) ?? { key: keyIn(entries) };
    return {
      key,
      hits: hits_addend?.value ?? Math.max(1, request.hits_addend),
      limit,
      index,
      ...list,
    };
  });
}

/**
 * The check of a descriptor. It may wait if its key's rule has a `max_wait_millis`.
 * @param millisLeft until Envoy gives up
 * @throws ServiceError INVALID_PARAMETER
 */
export function checkOf(draft: Draft, policy: KeyPolicy, millisLeft: number): AskedCheck {
  const { key, hits, lane, group } = draft;
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

function requestIn(message: CallMessage): RateLimitRequest {
  let request: RateLimitRequest;
  try {
    request = message.take();
  } catch (error) {
    if (error instanceof UnreadableMessage) throw invalid('the message', error.message);
    throw error;
  }
  const issue = requestSchema.safeParse(request).error?.issues[0];
  if (issue) throw invalid(pathText(issue.path) || 'the message', issue.message);
  return request;
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

/** A descriptor's own limit is an override of the maximum. It can't change the window. */
function maximumOf(
  { limit, index }: Draft,
  { limits: [{ windowMillis }] }: KeyPolicy,
): number | undefined {
  if (!limit) return undefined;
  const { unit, requests_per_unit: maximum } = limit;
  if (unit !== 'UNKNOWN' && UNIT_MILLIS[unit] === windowMillis) return maximum;
  throw invalid(
    `descriptors[${index}].limit.unit`,
    `be as long as the window of its key (${windowMillis} ms)`,
  );
}

function invalid(parameter: string, must: string): ServiceError {
  return serviceError('INVALID_PARAMETER', { parameter, must });
}
