import { z } from 'zod';

import { type Range, requestId, shortText, wholeNumber } from '../common/schemas.js';
import { BOUNDS } from '../limiter/bounds.js';
import type { ErrorCode } from '../service/errors.js';

/** The elements of bulk requests and of their answers. Each message names the valid values, as the end of a sentence. */

export const MAX_ELEMENTS = 1000;

/** Zod describes literals as any numbers. */
function status<const Codes extends readonly [number, ...number[]]>(...codes: Codes) {
  return z.literal(codes).meta({ override: { type: 'integer' } });
}

/**
 * What a check asks for of its request, as an element of a bulk request and as a query alike.
 * @param number makes the schema of a number
 */
export function requestFields<Schema extends z.ZodType>(number: (range: Range) => Schema) {
  return {
    hits: number(BOUNDS.hits).optional(),
    holdMillis: number(BOUNDS.holdMillis).optional(),
    holder: shortText(BOUNDS.holderBytes).optional(),
    lane: z.string('a text').optional(),
    group: shortText(BOUNDS.groupBytes).optional(),
  };
}

/** An element of `POST /rate`. The length of the key is checked elsewhere, as for a key in a path. */
export const checkElement = z
  .strictObject(
    {
      key: z.string('a text'),
      requestId: requestId().optional(),
      maxRequests: wholeNumber(BOUNDS.maxRequests).optional(),
      defaultMaxRequests: wholeNumber(BOUNDS.maxRequests).optional(),
      maxRequestsInQueue: wholeNumber(BOUNDS.maxRequestsInQueue).optional(),
      windowMillis: wholeNumber(BOUNDS.windowMillis).optional(),
      ...requestFields(wholeNumber),
    },
    'an object',
  )
  .meta({ id: 'CheckElement' });

/** An element of `DELETE /rate`. */
export const releaseElement = z
  .strictObject(
    { key: z.string('a text'), request_id: z.string('a text').toLowerCase() },
    'an object',
  )
  .meta({ id: 'ReleaseElement' });

/** For programs. Its list grows. */
export const errorCode = z
  .custom<ErrorCode>()
  .meta({ type: 'string', description: 'Names the error, for programs. See the table of errors.' });

/** The result of an element that was rejected or failed, with the message that a single request would get. */
const error = z
  .object({
    status: status(400, 403, 409, 500, 503),
    error: z.string(),
    code: errorCode,
    /** In seconds. */
    retryAfter: z.int().min(1).optional(),
  })
  .meta({ id: 'ElementError' });

/** The outage policy that decided, if the store could not be asked. */
const outagePolicy = z.enum(['allow', 'local']).optional();

/** An element of the answer to `POST /rate`. */
export const checkResult = z
  .union([
    z.object({
      status: status(200),
      request_id: z.guid(),
      outagePolicy,
      /** Set on an approval that a shadow rule would have denied. */
      shadow: z.literal('denied').optional(),
    }),
    z.object({
      status: status(429),
      error: z.string(),
      code: errorCode,
      /** In seconds, until the window ends or a hold lapses. */
      retryAfter: z.int().min(1),
      /** The name of the limit that denied the check, if the key has several limits. */
      limit: z.string().optional(),
      outagePolicy,
    }),
    error,
  ])
  .meta({ id: 'CheckResult' });

/** An element of the answer to `DELETE /rate`. */
export const releaseResult = z
  .union([
    z.object({ status: status(200) }),
    z.object({ status: status(404), error: z.string(), code: errorCode }),
    error,
  ])
  .meta({ id: 'ReleaseResult' });

export type CheckElement = z.infer<typeof checkElement>;
export type CheckResult = z.infer<typeof checkResult>;
export type ReleaseElement = z.infer<typeof releaseElement>;
export type ReleaseResult = z.infer<typeof releaseResult>;
