import { z } from 'zod';

import { checkResult, releaseResult } from './bulk-schemas.js';

/** The bodies of answers, for the document and for types. Nothing checks an answer by them while it is served. */

const count = z.int().min(0);

const requestId = z
  .uuid()
  .meta({ description: 'Of the approval. It takes this id to release it.' });

/** The body of an approval, and of its release. */
export const approval = z.strictObject({ request_id: requestId }).meta({ id: 'Approval' });

/** The body of an error. `key` is missing where the request has none. */
export const errorBody = z
  .strictObject({
    error: z
      .string()
      .meta({ description: 'The message. That of a denial is `rate limit exceeded`.' }),
    key: z.string().optional().meta({ description: 'The key of the request, if it has one.' }),
  })
  .meta({ id: 'Error' });

/** A key of which there is an instance. */
export const instance = z
  .strictObject({
    Key: z.string(),
    Config: z.strictObject({
      WindowMillis: count.meta({ description: 'The length of the window.' }),
      MaxRequestsPerWindow: count.meta({ description: 'The approvals per window.' }),
      MaxRequestsInQueue: count.meta({ description: 'The places in the queue.' }),
    }),
    NumApprovedThisWindow: count.meta({
      description: 'Approvals in the window, without those released.',
    }),
    NumDeniedThisWindow: count.meta({
      description: 'Denials of checks that did not ask to wait.',
    }),
    NumWaiting: count.meta({ description: 'Requests in the queue.' }),
    Found: z.literal(true),
  })
  .meta({ id: 'Instance' });

/** A key of which there is no instance. */
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
      .meta({ description: 'The rules by which they are limited, where there are any.' }),
  })
  .meta({ id: 'Listing' });

export const checkResults = z.array(checkResult);
export const releaseResults = z.array(releaseResult);

export type Instance = z.infer<typeof instance>;
export type MissingInstance = z.infer<typeof missingInstance>;
