import { z } from 'zod';

import { pathText } from '../common/path-text.js';
import { parseKey } from '../http/intake/parameters.js';
import { httpError } from '../http/replies/http-error.js';
import { BOUNDS } from '../limiter/bounds.js';
import type { CheckRequest } from '../limiter/limiter.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { KeyOf } from './key-template.js';
import {
  type Descriptor,
  type RateLimitRequest,
  UNIT_MILLIS,
  type UNREADABLE,
} from './messages.js';

/** Envoy's routes have a few. Each is a check, and all of a request are decided at once. */
const MAX_DESCRIPTORS = 100;

const name = z.string().min(1, 'not be empty');
const hits = z.number().max(BOUNDS.hits.max, `be at most ${BOUNDS.hits.max}`);

const descriptorSchema = z.object({
  entries: z.array(z.object({ key: name })).min(1, 'have at least one entry'),
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
      .array(descriptorSchema)
      .min(1, 'have at least one descriptor')
      .max(MAX_DESCRIPTORS, `have at most ${MAX_DESCRIPTORS} descriptors`),
    hits_addend: hits,
  },
  'be a RateLimitRequest',
);

/** A descriptor of a request, and the key that it is a check of. */
export interface KeyedDescriptor {
  readonly key: string;
  readonly descriptor: Descriptor;
}

/**
 * What a request of Envoy asks for, in its order.
 * @throws HttpError INVALID_PARAMETER or INVALID_KEY_LENGTH
 */
export function keyedDescriptorsOf(
  request: RateLimitRequest | typeof UNREADABLE,
  keyOf: KeyOf,
): KeyedDescriptor[] {
  refuseInvalid(request);
  return request.descriptors.map((descriptor) => ({
    key: parseKey(keyOf(request.domain, descriptor.entries)),
    descriptor,
  }));
}

/**
 * The checks of a request. One may wait where its key's rule has a `max_wait`, and it asks for one approval.
 * @param keyed with keys that the caller may use: to find what applies to a key costs time, and errors tell of it
 * @param millisLeft until Envoy gives up
 * @throws HttpError INVALID_PARAMETER
 */
export function checksOf(
  request: RateLimitRequest,
  keyed: readonly KeyedDescriptor[],
  policyOf: (key: string) => KeyPolicy,
  millisLeft: number,
): CheckRequest[] {
  return keyed.map(({ key, descriptor }, place) => {
    const policy = policyOf(key);
    const hits = descriptor.hits_addend?.value ?? Math.max(1, request.hits_addend);
    const maxWaitMillis = hits > 1 ? 0 : Math.min(policy.maxWaitMillis, Math.floor(millisLeft));
    const maxRequests = maximumOf(descriptor, place, policy);
    const check = { key, maxRequests, ...(hits > 1 ? { hits } : {}) };
    return maxWaitMillis > 0
      ? { ...check, canWait: true, maxWaitMillis }
      : { ...check, canWait: false };
  });
}

function refuseInvalid(
  request: RateLimitRequest | typeof UNREADABLE,
): asserts request is RateLimitRequest {
  const issue = requestSchema.safeParse(request).error?.issues[0];
  if (!issue) return;
  throw httpError('INVALID_PARAMETER', {
    parameter: pathText(issue.path) || 'the message',
    must: issue.message,
  });
}

/** A descriptor's own limit is an override of the maximum. It can't change the window. */
function maximumOf(
  { limit }: Descriptor,
  place: number,
  { limits: { windowMillis } }: KeyPolicy,
): number | undefined {
  if (!limit) return undefined;
  const { unit, requests_per_unit: maximum } = limit;
  if (unit !== 'UNKNOWN' && UNIT_MILLIS[unit] === windowMillis) return maximum;
  throw httpError('INVALID_PARAMETER', {
    parameter: `descriptors[${place}].limit.unit`,
    must: `be as long as the window of its key, which has ${windowMillis} ms`,
  });
}
