import { z } from 'zod';

import { checkResult, releaseResult } from './bulk-schemas.js';

/** The bodies of answers, for types and for the OpenAPI document. Answers are not validated while they are served. */

const count = z.int().min(0);

const requestId = z.uuid().meta({ description: 'The id of the approval, for its release.' });

/** The body of an approval, and of its release. */
export const approval = z.strictObject({ request_id: requestId }).meta({ id: 'Approval' });

/** The body of the answer to a correction or a renewal. */
export const amendment = z
  .strictObject({
    request_id: requestId,
    hits: count
      .optional()
      .meta({ description: 'The hits of the approval from now on, if the request has set them.' }),
    holdMillis: count
      .optional()
      .meta({ description: 'Milliseconds until the hold lapses, if the approval is held.' }),
  })
  .meta({ id: 'Amendment' });

/** The body of the answer to a pause. */
export const pause = z
  .strictObject({
    key: z.string(),
    pauseMillis: count.meta({ description: 'Milliseconds until the pause ends; 0 if it is over.' }),
  })
  .meta({ id: 'Pause' });

/** The body of an error. `key` is missing if the request has none. Only denials have `limit`. */
export const errorBody = z
  .strictObject({
    error: z.string().meta({ description: 'The message. A denial has `rate limit exceeded`.' }),
    key: z.string().optional().meta({ description: 'The key of the request, if it has one.' }),
    limit: z.string().optional().meta({
      description:
        'The name of the limit that denied the check, if the key has several limits: of the limit that has room last.',
    }),
  })
  .meta({ id: 'Error' });

/** A further limit of a key. It has one of the two maxima. */
const furtherLimit = z.strictObject({
  Name: z.string(),
  WindowMillis: count.meta({ description: 'The length of its windows.' }),
  MaxRequestsPerWindow: count
    .optional()
    .meta({ description: 'The approvals per window, each of which counts as 1.' }),
  MaxHitsPerWindow: count.optional().meta({ description: 'The hits per window.' }),
  NumApprovedThisWindow: count.meta({ description: 'What the approvals take of the maximum.' }),
});

/** A key with an instance. */
export const instance = z
  .strictObject({
    Key: z.string(),
    Config: z.strictObject({
      WindowMillis: count.meta({ description: 'The length of the window.' }),
      MaxRequestsPerWindow: count.meta({ description: 'The approvals per window.' }),
      MaxRequestsInQueue: count.meta({ description: 'The places in the queue.' }),
    }),
    NumApprovedThisWindow: count.meta({
      description: 'Approvals in the window that were not released.',
    }),
    NumDeniedThisWindow: count.meta({
      description: 'Denials of checks that did not ask to wait.',
    }),
    NumWaiting: count.meta({ description: 'Requests in the queue.' }),
    PausedMillis: count
      .optional()
      .meta({ description: 'Milliseconds until the pause of the key ends. Left out if 0.' }),
    NumHeld: count.optional().meta({
      description: 'The hits of held approvals, which are among the approvals. Left out if 0.',
    }),
    Limits: z
      .array(furtherLimit)
      .optional()
      .meta({ description: 'The further limits of the key. Left out if there are none.' }),
    Found: z.literal(true),
  })
  .meta({ id: 'Instance' });

/** A key without an instance. */
export const missingInstance = z
  .strictObject({ Key: z.string(), Found: z.literal(false) })
  .meta({ id: 'MissingInstance' });

/** All instances. */
export const listing = z
  .strictObject({
    Instances: z.record(z.string(), instance).meta({ description: 'By their keys.' }),
    Rules: z
      .strictObject({ Digest: z.string(), Count: count })
      .optional()
      .meta({ description: 'The rules in force, if there are any.' }),
  })
  .meta({ id: 'Listing' });

export const checkResults = z.array(checkResult);
export const releaseResults = z.array(releaseResult);

export type Instance = z.infer<typeof instance>;
export type MissingInstance = z.infer<typeof missingInstance>;
