import { z } from 'zod';

import { BOUNDS } from '../../limiter/bounds.js';
import { querySchema } from '../intake/parameters.js';

const { min, max } = BOUNDS.keyBytes;

/** A new parameter of a check does not compile until it is described here. */
const CHECK_PARAMETERS: Record<keyof typeof querySchema.shape, string> = {
  canWait:
    'Whether the request waits in the queue of the key where the limit is reached; in any case of letters.',
  maxRequests: "The key's approvals per window, for this check and all later ones of everybody.",
  maxRequestsInQueue:
    "The places in the key's queue, for this check and all later ones of everybody; 0 turns queueing off.",
  maxWaitMillis:
    'How long the request is ready to wait, with `canWait`. Where its turn can not come in time it is refused at once.',
};

const key = z
  .string()
  .min(min)
  .max(max)
  .meta({
    param: { id: 'Key' },
    description: `The limiter key, of ${min} to ${max} bytes of UTF-8 before it is percent-encoded. A \`/\` in it is \`%2F\`.`,
    examples: ['report'],
  });

const anyKey = z
  .string()
  .min(1)
  .meta({
    param: { id: 'AnyKey' },
    description: 'The limiter key. One that is too long to be one is merely not found.',
    examples: ['report'],
  });

const requestId = z
  .string()
  .meta({ param: { id: 'RequestId' }, description: 'The `request_id` of the approval.' });

const requestHeaders = z.object({
  'X-Correlation-ID': z
    .string()
    .optional()
    .meta({
      param: { id: 'CorrelationId' },
      description:
        'Is in each log line of the request, and in its answer. Another is made of one that no log can carry.',
    }),
});

const checkHeaders = requestHeaders.extend({
  Prefer: z
    .string()
    .optional()
    .meta({
      description: '`wait=N` of RFC 7240: as `maxWaitMillis`, in seconds, where that is not given.',
      examples: ['wait=5'],
    }),
});

/** What each request may say. */
export const ofRequest = { header: requestHeaders };

/** What a check says, besides. */
export const ofCheck = {
  header: checkHeaders,
  path: z.object({ key }),
  query: z.object(
    Object.fromEntries(
      Object.entries(querySchema.shape).map(([name, schema]) => [
        name,
        schema.meta({ description: CHECK_PARAMETERS[name as keyof typeof CHECK_PARAMETERS] }),
      ]),
    ),
  ),
};

/** What a release says, besides. */
export const ofRelease = { ...ofRequest, path: z.object({ key, requestId }) };

/** What one who asks for an instance says, besides. */
export const ofInstance = { ...ofRequest, path: z.object({ key: anyKey }) };
