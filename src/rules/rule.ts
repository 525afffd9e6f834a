import { z } from 'zod';

import {
  type Range,
  wholeNumber as wholeNumberOfJson,
  wholeNumberIn,
} from '../common/whole-number.js';
import { BOUNDS } from '../limiter/bounds.js';

/** A maximum of 0 approves nothing. A queue of 0 lets no check wait. */
const maximum = wholeNumber({ min: 0, max: BOUNDS.maxRequests.max });
const queue = wholeNumber(BOUNDS.maxRequestsInQueue);

/**
 * One rule of the rules file. The names of the first five fields are GoCC's, see
 * https://gigurra.github.io/gocc/guide/configuration/. A field that is omitted changes nothing.
 */
export const ruleSchema = z.strictObject(
  {
    key_pattern: z.string('must be a string'),
    key_pattern_is_regex: yesOrNo().default(false),
    max_requests_per_window: maximum.optional(),
    max_requests_in_queue: queue.optional(),
    window_millis: wholeNumber(BOUNDS.windowMillis).optional(),
    /** For metrics and explanations. */
    name: z
      .string('must be a string')
      .regex(/^[\w.:/-]{1,64}$/, 'must be 1 to 64 letters, digits, or any of _ . : / -')
      .optional(),
    requests_can_set_rate: yesOrNo().optional(),
    requests_can_mod_queue: yesOrNo().optional(),
    requests_can_set_window: yesOrNo().optional(),
    /** Whether callers without the scope `configure` may pause the keys. */
    requests_can_pause: yesOrNo().optional(),
    /** The greatest values that requests may set. */
    max_requests_ceiling: wholeNumber(BOUNDS.maxRequests).optional(),
    max_requests_in_queue_ceiling: queue.optional(),
    window_millis_ceiling: wholeNumber(BOUNDS.windowMillis).optional(),
    /** Whether requests may hold approvals, and for how many milliseconds at most. */
    requests_can_hold: yesOrNo().optional(),
    max_hold_millis: wholeNumber(BOUNDS.holdMillis).optional(),
    /** How long checks of Envoy's protocol may wait, in milliseconds. */
    max_wait_millis: wholeNumber(BOUNDS.maxWaitMillis).optional(),
    /** Decides and counts, but never denies. */
    shadow: yesOrNo().optional(),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `must not have the field ${issue.keys[0]}`
        : 'must be an object with key_pattern',
  },
);

/** A rule as the file has it. */
export type Rule = z.infer<typeof ruleSchema>;

export const rulesSchema = z.strictObject(
  { keys: z.array(ruleSchema, 'must be a list') },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `must not have the field ${issue.keys[0]}`
        : 'must be an object with keys',
  },
);

function wholeNumber(range: Range) {
  return wholeNumberOfJson(range, `must be ${wholeNumberIn(range)}`);
}

function yesOrNo() {
  return z.boolean('must be true or false');
}
