import { z } from 'zod';

import { wholeNumber } from '../../common/whole-number.js';
import { BOUNDS } from '../../limiter/bounds.js';

/**
 * The elements of calls for many, and of their answers. Each message names what is taken, for the end of a sentence.
 */

/** The most elements of a call. */
export const MAX_ELEMENTS = 1000;

/** An element of `POST /rate`. The bytes of the key are counted elsewhere, as those of a key in a path. */
export const checkElement = z
  .strictObject(
    {
      key: z.string('a text'),
      maxRequests: wholeNumber(BOUNDS.maxRequests).optional(),
      maxRequestsInQueue: wholeNumber(BOUNDS.maxRequestsInQueue).optional(),
    },
    'an object',
  )
  .meta({ id: 'CheckElement' });

/** An element of `DELETE /rate`. */
export const releaseElement = z
  .strictObject({ key: z.string('a text'), request_id: z.string('a text') }, 'an object')
  .meta({ id: 'ReleaseElement' });

/** What an element has in the place of its answer, with the message that it would have alone. */
const refusal = z
  .object({
    status: z.union([z.literal(400), z.literal(403), z.literal(500), z.literal(503)]),
    error: z.string(),
    /** In seconds. */
    retryAfter: z.int().min(1).optional(),
  })
  .meta({ id: 'ElementRefusal' });

/** What decided in the place of a store that could not be asked. */
const outagePolicy = z.enum(['allow', 'local']).optional();

/** An element of the answer to `POST /rate`. */
export const checkResult = z
  .union([
    z.object({
      status: z.literal(200),
      request_id: z.uuid(),
      outagePolicy,
      /** Set on an approval that a rule would have denied, were it not in the shadow. */
      shadow: z.literal('denied').optional(),
    }),
    z.object({
      status: z.literal(429),
      error: z.string(),
      /** In seconds, until the window ends. */
      retryAfter: z.int().min(1),
      outagePolicy,
    }),
    refusal,
  ])
  .meta({ id: 'CheckResult' });

/** An element of the answer to `DELETE /rate`. */
export const releaseResult = z
  .union([
    z.object({ status: z.literal(200) }),
    z.object({ status: z.literal(404), error: z.string() }),
    refusal,
  ])
  .meta({ id: 'ReleaseResult' });

export type CheckElement = z.infer<typeof checkElement>;
export type CheckResult = z.infer<typeof checkResult>;
export type ReleaseElement = z.infer<typeof releaseElement>;
export type ReleaseResult = z.infer<typeof releaseResult>;
