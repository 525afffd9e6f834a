import { z } from 'zod';

import { shortText } from '../common/schemas.js';
import { BOUNDS } from '../limiter/bounds.js';
import type { QueueOrder } from '../limiter/queue-order.js';
import { areDifferent, strictObject, text, wholeNumber, yesOrNo } from './field-schemas.js';

const MAX_LANES = 5;

const laneName = text().regex(
  /^[a-z0-9][a-z0-9_-]{0,31}$/,
  'must be 1 to 32 of a-z 0-9 _ -, and begin with a letter or a digit',
);

const lane = strictObject(
  { name: laneName, head_start_millis: wholeNumber(BOUNDS.headStartMillis).default(0) },
  'must be an object with name',
);

const groupName = shortText(BOUNDS.groupBytes);
/** The group of checks that name none. */
const NO_GROUP = '';
/** The text of a key's limits has all of them. */
const MAX_MAXIMA = 100;
/** The fields that only fair groups have. */
const OF_GROUPS = ['max_requests_in_queue_per_group', 'weights'] as const;

/** An object with the names of groups. @param none whether it may name the group of checks that name none */
function byGroup<Value extends z.ZodType>(value: Value, none?: typeof NO_GROUP) {
  const record = z.record(z.string(), value, 'must be an object').check(({ value, issues }) => {
    for (const group of Object.keys(value)) {
      const { error } = groupName.safeParse(group);
      if (!error || group === none) continue;
      const message = `must have names of groups, each a ${error.issues[0]?.message}`;
      issues.push({ code: 'custom', message, input: value });
      return;
    }
  });
  // A record would leave it out without a word.
  return z
    .unknown()
    .refine(
      (given) => !Object.hasOwn({ ...(given as object) }, '__proto__'),
      'must not name a group __proto__',
    )
    .pipe(record);
}

export function maximaOfGroups(maximum: z.ZodType<number>) {
  return byGroup(maximum, NO_GROUP).refine(
    (maxima) => Object.keys(maxima).length <= MAX_MAXIMA,
    `must have at most ${MAX_MAXIMA} groups`,
  );
}

/** The field `queue` of a rule. It is one unit: a later rule replaces all of it. */
export const queueOfRule = strictObject(
  {
    lanes: z
      .array(lane, 'must be a list')
      .min(1, 'must have at least one lane')
      .max(MAX_LANES, `must have at most ${MAX_LANES} lanes`)
      .refine(
        (lanes) => areDifferent(lanes.map(({ name }) => name)),
        'must have lanes with different names',
      )
      .optional(),
    fair: yesOrNo().optional(),
    max_requests_in_queue_per_group: wholeNumber({
      ...BOUNDS.maxRequestsInQueue,
      min: 1,
    }).optional(),
    weights: byGroup(wholeNumber(BOUNDS.weight)).optional(),
  },
  'must be an object with lanes, or with fair: true',
).check(({ value, issues }) => {
  for (const field of OF_GROUPS) {
    if (value[field] === undefined || value.fair) continue;
    const message = 'must have fair: true beside it';
    issues.push({ code: 'custom', path: [field], message, input: value });
  }
});

export const lanesOfLimit = z
  .array(laneName, 'must be a list')
  .min(1, 'must have at least one lane')
  .refine(areDifferent, 'must have different lanes');

interface WithLists {
  readonly queue?: z.infer<typeof queueOfRule> | undefined;
  readonly limits?:
    | readonly {
        readonly lanes?: readonly string[] | undefined;
        readonly per?: 'group' | undefined;
        readonly maxima?: object | undefined;
      }[]
    | undefined;
}

/**
 * A check for a schema: adds an issue for a limit of lanes or of groups that the rule's queue does not have. The queue of another
 * rule does not count, since it depends on the key which rules apply.
 */
export function checkListsOfLimits({ value, issues }: z.core.ParsePayload<WithLists>): void {
  const { lanes: ofQueue, fair = false } = value.queue ?? {};
  const names = fair ? undefined : ofQueue?.map(({ name }) => name);
  const reject = (path: (string | number)[], message: string): void => {
    issues.push({ code: 'custom', path: ['limits', ...path], message, input: value });
  };
  for (const [index, { lanes = [], per, maxima }] of (value.limits ?? []).entries()) {
    if (maxima && !per) reject([index, 'maxima'], 'must have per: group beside it');
    if (per && !fair) reject([index, 'per'], 'must have queue with fair: true in the same rule');
    if (lanes.length > 0 && fair) {
      reject([index, 'lanes'], 'must not be in a rule whose queue has fair: true');
      continue;
    }
    if (lanes.length > 0 && !names) {
      reject([index, 'lanes'], 'must have queue with these lanes in the same rule');
      continue;
    }
    for (const [at, lane] of lanes.entries()) {
      if (names?.includes(lane)) continue;
      reject(
        [index, 'lanes', at],
        `must be a lane of the rule's queue, one of ${names?.join(', ')}, not ${lane}`,
      );
    }
  }
}

/** Returns the order that a rule's `queue` asks for. @returns undefined for one list, first come, first served */
export function orderIn({
  lanes,
  fair = false,
  max_requests_in_queue_per_group: maxRequestsInQueuePerGroup,
  weights = {},
}: z.infer<typeof queueOfRule>): QueueOrder | undefined {
  const declared = lanes?.map(({ name, head_start_millis: headStartMillis }) => ({
    name,
    headStartMillis,
  }));
  if (!fair) return declared && { kind: 'lanes', lanes: declared };
  return {
    kind: 'fair',
    lanes: declared,
    maxRequestsInQueuePerGroup,
    weights: new Map(Object.entries(weights)),
  };
}
