import { z } from 'zod';

import { BOUNDS } from '../../limiter/bounds.js';
import { amendmentSchema, pauseSchema, querySchema, reportSchema } from '../intake/parameters.js';

const { min, max } = BOUNDS.keyBytes;

/** A new parameter of a check does not compile until it is described here. */
const CHECK_PARAMETERS: Record<keyof typeof querySchema.shape, string> = {
  requestId:
    'The id of the request, a UUID that the caller chooses. All checks of the key with this id are one request: while it waits, a later check takes its place over; when it is approved, a later check gets the same approval.',
  canWait:
    'Whether the request waits in the queue of the key if the limit is reached. `1` and `0` are also accepted; upper and lower case are the same.',
  maxRequests: "The key's approvals per window, for this check and all later checks of any caller.",
  defaultMaxRequests:
    'As `maxRequests`, if no rule sets `max_requests_per_window` for the key and the check has no `maxRequests`; otherwise it changes nothing.',
  maxRequestsInQueue:
    "The places in the key's queue, for this check and all later checks of any caller; 0 turns queueing off.",
  windowMillis:
    "The length of the key's windows from the next one on, for all later checks of any caller. Only for a key whose own limit has fixed windows.",
  hits: 'How much of the maximum the check takes, all or nothing; 1 if it is left out.',
  holdMillis:
    'Holds the approval: it counts in every window until it is released, or until this many milliseconds have passed since the approval or its last renewal.',
  holder:
    'With `holdMillis`: who holds the approval, for people who look at the key. `Holders` of `/debug/{key}` shows it.',
  lane: 'The lane of the check, if the rule of the key has lanes: `lanes` in `queue`. Default: the last lane. The lane also decides which limits count the check.',
  group:
    'The group of the check, if the rule of the key has fair groups: `fair` in `queue`. Checks without a group are one group.',
  maxWaitMillis:
    'The longest wait, with `canWait`. The request is denied at once if its turn would come too late and the key has had no release lately. With `keepMillis` it begins when the request gets its place, and bounds the waits of all its checks together.',
  keepMillis:
    'With `canWait` and `requestId`: the place of the request stays for this long after the client has disconnected, or has got a 202. An approval is kept for it as long. A later check with the same `requestId` gets the place, or the approval, on any replica. 0 keeps no place; 1 to 999 count as 1000.',
  peek: 'Only says what a check without `canWait` would get: with `true`, nothing is counted, and no key is created or kept. Not with `requestId`, `keepMillis`, `maxRequests`, `defaultMaxRequests`, `maxRequestsInQueue`, `windowMillis` and `holder`.',
};

const optionalText = z.string().optional();

const key = z
  .string()
  .min(min)
  .max(max)
  .meta({
    param: { id: 'Key' },
    description: `The limiter key, of ${min} to ${max} bytes of UTF-8 before percent-encoding. A \`/\` in the key is \`%2F\`.`,
    examples: ['report'],
  });

const anyKey = z
  .string()
  .min(1)
  .meta({
    param: { id: 'AnyKey' },
    description: 'The limiter key. A key that is too long is not found.',
    examples: ['report'],
  });

const requestId = z
  .string()
  .meta({ param: { id: 'RequestId' }, description: 'The `request_id` of the approval.' });

/** Another text is a second part of a key, which gets a 405. */
const uuid = z.guid().meta({
  param: { id: 'RequestUuid' },
  description: 'The `request_id` of the approval, or the `requestId` of the check.',
});

const requestHeaders = z.object({
  'X-Correlation-ID': optionalText.meta({
    param: { id: 'CorrelationId' },
    description: 'Logged with the request and echoed in the answer. An invalid value is replaced.',
  }),
});

const checkHeaders = requestHeaders.extend({
  Prefer: optionalText.meta({
    description:
      '`wait=N` of RFC 7240: as `maxWaitMillis`, in seconds, if that is not given. With `keepMillis`: the check is answered 202 if it is not decided after N seconds, and its request waits on.',
    examples: ['wait=5'],
  }),
});

export const ofRequest = { header: requestHeaders };

export const ofCheck = {
  header: checkHeaders,
  path: z.object({ key }),
  query: z.object(
    Object.fromEntries(
      Object.entries(querySchema.shape).map(([name, schema]) => [
        name,
        schema.describe(CHECK_PARAMETERS[name as keyof typeof CHECK_PARAMETERS]),
      ]),
    ),
  ),
};

export const ofRelease = { ...ofRequest, path: z.object({ key, requestId }) };

export const ofStatus = { ...ofRequest, path: z.object({ key, requestId: uuid }) };

export const ofHoldEnd = {
  ...ofRequest,
  path: z.object({
    key,
    handle: z.string().meta({
      param: { id: 'Handle' },
      description: 'The `Handle` of a held approval, from `/debug/{key}`.',
    }),
  }),
};

export const ofKeyChange = {
  ...ofRequest,
  path: z.object({ key }),
  query: z.object({
    pauseMillis: pauseSchema.shape.pauseMillis
      .optional()
      .describe('The length of the pause, from now on; 0 ends it. Required without `remaining`.'),
    canShorten: pauseSchema.shape.canShorten.describe(
      'With `pauseMillis`: whether a pause that is on may end sooner by it; `true` by default. Programs that pause by themselves set `false`.',
    ),
    remaining: reportSchema.shape.remaining
      .optional()
      .describe('How much a vendor says remains of its limit. Required without `pauseMillis`.'),
    resetMillis: reportSchema.shape.resetMillis.describe(
      "With `remaining`: until the vendor's limit resets, from now on; by default until the window ends.",
    ),
    limit: reportSchema.shape.limit.describe(
      "With `remaining`: the name of a limit of the key that is a fixed window; by default, and with `default`, the key's own limit.",
    ),
    group: pauseSchema.shape.group.describe(
      'The group that is paused, or whose limit is meant, in a key with fair groups; empty for the checks that name none. Without it, a pause stops the whole key, and a report for a limit of each group is about the checks that name no group.',
    ),
  }),
};

export const ofAmendment = {
  ...ofRelease,
  query: amendmentSchema.extend({
    hits: amendmentSchema.shape.hits.describe(
      'The hits of the approval from now on; 0 leaves an approval that takes nothing. As before if it is left out.',
    ),
    holdMillis: amendmentSchema.shape.holdMillis.describe(
      'The length of the hold from now on, if the approval is held. As before if it is left out.',
    ),
  }),
};

export const ofInstance = { ...ofRequest, path: z.object({ key: anyKey }) };
