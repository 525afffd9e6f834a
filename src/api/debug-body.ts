import { z } from 'zod';

import { CALENDAR_UNITS } from '../limiter/calendar/calendar.js';
import {
  ALGORITHM_NAMES,
  DEFAULT_ALGORITHM,
  forEachParameter,
  kindOf,
  type NamedAlgorithm,
} from '../limiter/kinds/kinds.js';
import { MOST_HOLDINGS } from '../limiter/holdings.js';
import type { Holding, InstanceDetail as DetailState, InstanceState } from '../limiter/limiter.js';
import type { LimitInForce, LimitState } from '../limiter/limits.js';
import { type GroupState, MOST_LISTS_SHOWN, type QueueListState } from '../limiter/queue-order.js';

/** What `/debug` says of keys: the schemas, for types and for the OpenAPI document, and what fills them. */

const count = z.int().min(0);
const optionalCount = count.optional();
const optionalText = z.string().optional();

/** How the approvals of a limit count. */
const algorithmFields = {
  Algorithm: z
    .enum(ALGORITHM_NAMES)
    .exclude([DEFAULT_ALGORITHM.name])
    .optional()
    .describe('How approvals count. Left out for fixed windows.'),
  ...forEachParameter('shown', ({ description }) => optionalCount.meta({ description })),
  Calendar: z
    .enum(CALENDAR_UNITS)
    .optional()
    .describe('What the windows are, if a calendar says when they begin.'),
  TimeZone: optionalText.describe('The time zone of the calendar, by its IANA name.'),
};

/** A further limit of a key. It has one of the two maxima. */
const furtherLimit = z.strictObject({
  Name: z.string(),
  WindowMillis: count.describe('The length of its windows.'),
  MaxRequestsPerWindow: optionalCount.describe(
    'The approvals per window, each of which counts as 1.',
  ),
  MaxHitsPerWindow: optionalCount.describe('The hits per window.'),
  ...algorithmFields,
  Lanes: z
    .array(z.string())
    .optional()
    .describe('The lanes that it counts. Left out if it counts all checks.'),
  Per: z
    .literal('group')
    .optional()
    .describe(
      'Whether each group has the limit to itself: `Groups` of `/debug/{key}` has what counts.',
    ),
  NumApprovedThisWindow: optionalCount.describe(
    'What the approvals take of the maximum. Left out if each group has the limit to itself.',
  ),
});

export const instance = z
  .strictObject({
    Key: z.string(),
    Config: z.strictObject({
      WindowMillis: count.describe('The length of the window.'),
      MaxRequestsPerWindow: count.describe('The approvals per window.'),
      MaxRequestsInQueue: count.describe('The places in the queue.'),
    }),
    ...algorithmFields,
    NumApprovedThisWindow: count.describe('What counts now of the approvals.'),
    NumDeniedThisWindow: count.describe('Denials of checks that did not ask to wait.'),
    NumWaiting: count.describe('Requests in the queue.'),
    PausedMillis: optionalCount.describe(
      'Milliseconds until the pause of the key ends. Left out if 0.',
    ),
    NumHeld: optionalCount.describe(
      'The hits of held approvals, which are among the approvals. Left out if 0.',
    ),
    Limits: z
      .array(furtherLimit)
      .optional()
      .describe('The further limits of the key. Left out if there are none.'),
    Found: z.literal(true),
  })
  .meta({ id: 'Instance' });

const holderShown = z
  .strictObject({
    Handle: z
      .string()
      .describe('Names it for `DELETE /rate/{key}/holders/{handle}`. Not its request id.'),
    Holder: optionalText.describe(
      'The holder that its check has named. Left out if there is none.',
    ),
    HeldMillis: optionalCount.describe(
      'Milliseconds since its hold began. Left out without `Holder`.',
    ),
    LapseMillis: count.describe('Milliseconds until its hold lapses, if it is not renewed.'),
    Hits: count,
  })
  .meta({ id: 'Holder' });

/** A list of a queue that has several. */
const queueList = z
  .strictObject({
    Lane: z.string().optional(),
    Group: optionalText.describe('The name of the group; empty for checks that name none.'),
    NumWaiting: count.describe('Requests in the list.'),
    OldestMillis: count.describe('Milliseconds that its first request has waited.'),
    StoppedBy: optionalText.describe(
      'Of a group that waits for room of its own alone: the name of the limit, or `paused`.',
    ),
    StoppedMillis: optionalCount.describe(
      'With `StoppedBy`: the least number of milliseconds until it may have room. Left out if only a release can make it.',
    ),
  })
  .meta({
    id: 'QueueList',
    description:
      'A list with waiters. It has the name of its lane or of its group; neither if its requests came before the key had lanes or groups.',
  });

/** What a group has of the limits that each group has to itself. */
const groupShown = z
  .strictObject({
    Group: z.string().describe('The name of the group; empty for checks that name none.'),
    NumApproved: z
      .record(z.string(), count)
      .describe('What its approvals take of each limit, by the names of the limits.'),
  })
  .meta({ id: 'Group' });

/** A key with an instance, its queue, and who holds its approvals. */
export const instanceDetail = instance
  .extend({
    Queue: z
      .strictObject({
        NumLists: count.describe('Lists with waiters.'),
        Lists: z
          .array(queueList)
          .max(MOST_LISTS_SHOWN)
          .describe(`The longest of them first, at most ${MOST_LISTS_SHOWN}.`),
      })
      .optional()
      .describe(
        'The lists of a queue with lanes or fair groups. Left out if no request waits in a lane or a group.',
      ),
    Groups: z
      .array(groupShown)
      .max(MOST_LISTS_SHOWN)
      .optional()
      .describe(
        `The groups that have most of the limits that each group has to itself, at most ${MOST_LISTS_SHOWN}. Left out without such limits.`,
      ),
    Holders: z
      .array(holderShown)
      .max(MOST_HOLDINGS)
      .optional()
      .describe(
        `The held approvals, at most ${MOST_HOLDINGS}, in the order of their lapses. Left out if there are none.`,
      ),
  })
  .meta({ id: 'InstanceDetail' });

export const missingInstance = z
  .strictObject({ Key: z.string(), Found: z.literal(false) })
  .meta({ id: 'MissingInstance' });

export const listing = z
  .strictObject({
    Instances: z.record(z.string(), instance).describe('By their keys.'),
    Rules: z
      .strictObject({ Digest: z.string(), Count: count })
      .optional()
      .describe('The rules in force, if there are any.'),
  })
  .meta({ id: 'Listing' });

export type Instance = z.infer<typeof instance>;
export type InstanceDetail = z.infer<typeof instanceDetail>;

export function debugBody(state: InstanceState): Instance {
  const { held, pausedMillis } = state;
  const [own, ...further] = state.limits;
  const all = [...further, ...(state.limitsOfGroups ?? [])].map(toLimit);
  return {
    Key: state.key,
    Config: {
      WindowMillis: own.windowMillis,
      MaxRequestsPerWindow: own.maximum,
      MaxRequestsInQueue: state.maxRequestsInQueue,
    },
    ...shownAlgorithm(own.algorithm),
    NumApprovedThisWindow: own.used,
    NumDeniedThisWindow: state.denied,
    NumWaiting: state.waiting,
    ...(held > 0 ? { NumHeld: held } : {}),
    ...(pausedMillis > 0 ? { PausedMillis: pausedMillis } : {}),
    ...(all.length > 0 ? { Limits: all } : {}),
    Found: true,
  };
}

export function debugDetailBody(state: DetailState, holdings: readonly Holding[]): InstanceDetail {
  const { lists = [], listCount = 0, groups, limitsOfGroups = [] } = state;
  const names = limitsOfGroups.map(({ name = '' }) => name);
  return {
    ...debugBody(state),
    ...(listCount > 0 ? { Queue: { NumLists: listCount, Lists: lists.map(toQueueList) } } : {}),
    ...(groups ? { Groups: groups.map((group) => toGroup(group, names)) } : {}),
    ...(holdings.length > 0 ? { Holders: holdings.map(toHolder) } : {}),
  };
}

function toGroup({ name, used }: GroupState, limits: readonly string[]) {
  return {
    Group: name,
    NumApproved: Object.fromEntries(limits.map((limit, i) => [limit, used[i] ?? 0])),
  };
}

function toQueueList({ kind, name, waiting, oldestMillis, ...stopped }: QueueListState) {
  const { stoppedBy, stoppedMillis } = stopped;
  return {
    ...(kind === 'lane' ? { Lane: name } : {}),
    ...(kind === 'group' ? { Group: name } : {}),
    NumWaiting: waiting,
    OldestMillis: oldestMillis,
    ...(stoppedBy === undefined ? {} : { StoppedBy: stoppedBy }),
    ...(stoppedMillis === undefined ? {} : { StoppedMillis: Math.ceil(stoppedMillis) }),
  };
}

function toHolder({ handle, holder, heldMillis, lapseMillis, hits }: Holding) {
  return {
    Handle: handle,
    ...(holder === undefined ? {} : { Holder: holder }),
    ...(heldMillis === undefined ? {} : { HeldMillis: heldMillis }),
    LapseMillis: lapseMillis,
    Hits: hits,
  };
}

function toLimit(limit: LimitInForce & Partial<Pick<LimitState, 'used'>>) {
  const { name = '', windowMillis, counts, maximum, algorithm, lanes, perGroup, used } = limit;
  return {
    Name: name,
    WindowMillis: windowMillis,
    ...(counts === 'hits' ? { MaxHitsPerWindow: maximum } : { MaxRequestsPerWindow: maximum }),
    ...shownAlgorithm(algorithm),
    ...(lanes ? { Lanes: [...lanes] } : {}),
    ...(perGroup ? { Per: 'group' as const } : {}),
    ...(used === undefined ? {} : { NumApprovedThisWindow: used }),
  };
}

function shownAlgorithm(algorithm: NamedAlgorithm): Pick<Instance, keyof typeof algorithmFields> {
  return kindOf(algorithm).shown(algorithm);
}
