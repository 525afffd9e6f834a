import { z } from 'zod';

import { checkResult, errorCode, releaseResult } from './bulk-schemas.js';

/** The bodies of answers, for types and for the OpenAPI document. Answers are not validated while they are served. */

const count = z.int().min(0);
const optionalCount = count.optional();
const positive = z.int().min(1);
const optionalPositive = positive.optional();
const optionalText = z.string().optional();

const requestId = z.guid().describe('The id of the approval, for its release.');

/** The body of an approval, and of its release. */
export const approval = z.strictObject({ request_id: requestId }).meta({ id: 'Approval' });

/** The body of the answer to a check with `keepMillis` whose request waits on. */
export const waitingBody = z
  .strictObject({
    request_id: z.guid().describe('The id that the check has chosen.'),
    position: positive.describe(
      'The place in the queue; 1 for the head. One above 1000 may count requests that have left.',
    ),
    waitMillis: count.describe('The least number of milliseconds until the turn.'),
  })
  .meta({ id: 'Waiting' });

export type WaitingBody = z.infer<typeof waitingBody>;

/** The body of the answer to a peek at a check that would be approved. */
export const peeked = z
  .strictObject({
    key: z.string(),
    waitMillis: count.describe('0: a check would be approved at once.'),
  })
  .meta({ id: 'Peeked' });

/** The body of the answer to a correction or a renewal. */
export const amendment = z
  .strictObject({
    request_id: requestId,
    hits: optionalCount.describe(
      'The hits of the approval from now on, if the request has set them.',
    ),
    holdMillis: optionalCount.describe(
      'Milliseconds until the hold lapses, if the approval is held.',
    ),
  })
  .meta({ id: 'Amendment' });

/** The body of the answer to what a request is now. */
export const requestStatus = z
  .strictObject({
    status: z.enum(['waiting', 'approved']),
    position: optionalPositive.describe(
      'Of a request that waits: its place in the queue, where 1 is the head. Exact while at most 1,000 are before it, with those that were withdrawn lately.',
    ),
    waitMillis: optionalCount.describe(
      'Of a request that waits: the least number of milliseconds until its turn, if nothing is released before.',
    ),
    stoppedBy: z
      .string()
      .optional()
      .describe(
        'Of a request that waits in a group which waits for room of its own alone: the name of the limit, or `paused`.',
      ),
    holdMillis: optionalCount.describe(
      'Of an approval: milliseconds until its hold lapses, if it is held.',
    ),
  })
  .meta({ id: 'RequestStatus' });

export const endedHold = z
  .strictObject({ key: z.string(), handle: z.string() })
  .meta({ id: 'EndedHold' });

/** The body of the answer to a pause, or to a report of what remains of a limit. */
export const keyChange = z
  .strictObject({
    key: z.string(),
    pauseMillis: optionalCount.describe(
      'Of a pause: milliseconds until it ends; 0 without a pause.',
    ),
    limit: optionalText.describe(
      'Of a report: the name of the limit, if the request has named it.',
    ),
    remaining: optionalCount.describe('Of a report: what is left of the limit now.'),
  })
  .meta({ id: 'KeyChange' });

/** The body of an error. `key` is missing if the request has none. Only denials have `limit`, and of peeks `waitMillis`. */
export const errorBody = z
  .strictObject({
    error: z.string().describe('The message. A denial has `rate limit exceeded`.'),
    key: optionalText.describe('The key of the request, if it has one.'),
    code: errorCode,
    limit: optionalText.describe(
      'The name of the limit that denied the check, if the key has several limits: of the limit that has room last.',
    ),
    waitMillis: optionalPositive.describe(
      'With `peek`: the least number of milliseconds until the turn of a check that joined the queue now.',
    ),
  })
  .meta({ id: 'Error' });

export type ErrorBody = z.infer<typeof errorBody>;

/** The same as a problem of RFC 9457. */
export const problemBody = errorBody
  .omit({ error: true })
  .extend({
    type: z.string().describe('A URI, or `about:blank`.'),
    title: z.string().describe('The type in words.'),
    status: z.int(),
    detail: z.string().describe('The message.'),
    'violated-policies': z
      .array(z.string())
      .optional()
      .describe('Of a denial: the name in `RateLimit-Policy` of what denied the check.'),
  })
  .meta({ id: 'Problem' });

export const checkResults = z.array(checkResult);
export const releaseResults = z.array(releaseResult);
