import { z } from 'zod';

import { BOUNDS } from '../limiter/bounds.js';
import { ALGORITHM_FIELDS, checkAlgorithmFields } from './algorithm-fields.js';
import { areDifferent, strictObject, text, wholeNumber, yesOrNo } from './field-schemas.js';
import { checkListsOfLimits, lanesOfLimit, maximaOfGroups, queueOfRule } from './queue-fields.js';

/** The name by which clients know the maximum per window of keys whose rules have no name. */
export const DEFAULT_NAME = 'default';

/** A maximum of 0 approves nothing. A queue of 0 lets no check wait. */
const maximum = wholeNumber({ min: 0, max: BOUNDS.maxRequests.max });
const places = wholeNumber(BOUNDS.maxRequestsInQueue);

/** The most further limits of a key. */
const MAX_FURTHER_LIMITS = 4;

const furtherLimitSchema = strictObject(
  {
    /** For denials, headers, metrics and Redis's names. */
    name: text().regex(/^[\w.-]{1,32}$/, 'must be 1 to 32 letters, digits, or any of _ . -'),
    max_requests_per_window: wholeNumber(BOUNDS.maxRequests).optional(),
    max_hits_per_window: wholeNumber(BOUNDS.maxRequests).optional(),
    window_millis: wholeNumber(BOUNDS.windowMillis).optional(),
    /** Whether a released approval gives back what it took. */
    releases_return: yesOrNo().default(true),
    /** The lanes whose checks it counts. */
    lanes: lanesOfLimit.optional(),
    /** `group`: each group has the limit to itself. */
    per: z.enum(['group'], { error: 'must be group' }).optional(),
    /** The maxima of groups that have another one. */
    maxima: maximaOfGroups(maximum).optional(),
    ...ALGORITHM_FIELDS,
  },
  'must be an object with name, a maximum, and window_millis or calendar',
)
  .refine(
    ({ max_requests_per_window: requests, max_hits_per_window: hits }) =>
      (requests === undefined) !== (hits === undefined),
    'must have either max_requests_per_window or max_hits_per_window',
  )
  .refine(
    ({ window_millis: windowMillis, calendar }) =>
      windowMillis !== undefined || calendar !== undefined,
    'must have either window_millis or calendar',
  )
  .refine(({ name }) => name !== DEFAULT_NAME, {
    path: ['name'],
    error: `must not be ${DEFAULT_NAME}, which is the name of the key's own maximum`,
  })
  .check(checkAlgorithmFields);

/** A further limit as the file has it. */
export type FurtherLimitRule = z.infer<typeof furtherLimitSchema>;

/**
 * One rule of the rules file. The names of the first five fields are GoCC's, see
 * https://gigurra.github.io/gocc/guide/configuration/. A field that is omitted changes nothing.
 */
export const ruleSchema = strictObject(
  {
    key_pattern: text(),
    key_pattern_is_regex: yesOrNo().default(false),
    max_requests_per_window: maximum.optional(),
    max_requests_in_queue: places.optional(),
    window_millis: wholeNumber(BOUNDS.windowMillis).optional(),
    /** Of the key's own limit. */
    ...ALGORITHM_FIELDS,
    /** For metrics and explanations. */
    name: text()
      .regex(/^[\w.:/-]{1,64}$/, 'must be 1 to 64 letters, digits, or any of _ . : / -')
      .optional(),
    requests_can_set_rate: yesOrNo().optional(),
    requests_can_mod_queue: yesOrNo().optional(),
    requests_can_set_window: yesOrNo().optional(),
    /** Whether callers without the scope `configure` may pause the keys. */
    requests_can_pause: yesOrNo().optional(),
    /** The greatest values that requests may set. */
    max_requests_ceiling: wholeNumber(BOUNDS.maxRequests).optional(),
    max_requests_in_queue_ceiling: places.optional(),
    window_millis_ceiling: wholeNumber(BOUNDS.windowMillis).optional(),
    /** Whether requests may hold approvals, and for how many milliseconds at most. */
    requests_can_hold: yesOrNo().optional(),
    max_hold_millis: wholeNumber(BOUNDS.holdMillis).optional(),
    /** The most hits that a correction may set. */
    max_corrected_hits: wholeNumber(BOUNDS.hits).optional(),
    /** Whether a denied check takes what is left. */
    denied_takes_rest: yesOrNo().optional(),
    /** How long checks of Envoy's protocol may wait, in milliseconds. */
    max_wait_millis: wholeNumber(BOUNDS.maxWaitMillis).optional(),
    /** Decides and counts, but never denies. */
    shadow: yesOrNo().optional(),
    /** In what order waiters have their turns. */
    queue: queueOfRule.optional(),
    /** Limits besides the maximum per window. */
    limits: z
      .array(furtherLimitSchema, 'must be a list')
      .max(MAX_FURTHER_LIMITS, `must have at most ${MAX_FURTHER_LIMITS} limits`)
      .refine(
        (limits) => areDifferent(limits.map(({ name }) => name)),
        'must have limits with different names',
      )
      .optional(),
  },
  'must be an object with key_pattern',
)
  .check(checkAlgorithmFields)
  .check(checkListsOfLimits);

/** A rule as the file has it. */
export type Rule = z.infer<typeof ruleSchema>;

export const rulesSchema = strictObject(
  { keys: z.array(ruleSchema, 'must be a list') },
  'must be an object with keys',
);
