import type { KeyLimits, LimitsOf, Overrides, Quota, RequestTrace } from '../../limiter/limiter.js';
import { ownLimit } from '../../limiter/limits.js';
import type { QueueList } from '../../limiter/queue-order.js';
import { isHeld } from '../../limiter/request.js';
import type { KeyNames } from '../shared/key-names.js';
import {
  encodeRules,
  quotaIn,
  quotasIn,
  type UsedOfGroups,
  type UsedOfLimits,
} from './limits-codec.js';
import { type AskedRequest, listOfPlace, type SaidList, sayRequest } from './requests-codec.js';
import {
  type CallerSettings,
  keysForNewWindow,
  keysInWindow,
  keysOf,
  sharedArguments,
} from './shared-arguments.js';

/** How many entries of a batch's reply come before the verdicts. */
export const HEAD = 3;

/**
 * The verdicts of `lua/check.lua`. A larger number is a ticket in the queue. A number below `turnTooLate` is
 * `turnTooLate` less the microseconds until the check's turn would come.
 */
export const VERDICT = {
  approved: 1,
  denied: 0,
  queueFull: -1,
  noPlace: -2,
  keyFull: -3,
  tooManyHits: -4,
  paused: -5,
  storeFull: -6,
  idUsed: -7,
  otherHits: -8,
  otherHold: -9,
  otherHolder: -11,
  waitExpired: -10,
  takenOver: -12,
  queueFullOfGroup: -13,
  turnTooLate: -14,
} as const;

export interface BatchedCheck {
  readonly request: AskedRequest;
  readonly requestId: string;
  /** Of the check among those of this replica, if its caller has chosen the request id. */
  readonly number?: number | undefined;
}

/** What a replica knows of a key for which its requests wait. */
export interface KnownWaiting {
  readonly lowestTicket: number;
  /** The id of the request with the lowest ticket. */
  readonly requestId: string;
  readonly millisToWindowEnd: number;
  /** The limits in force, as Redis writes them; '' if it has not said. */
  readonly limits: string;
}

/**
 * What a replica assumes of a key, which decides how many of its names Redis gets.
 * - `inWindow`: nobody waits, and the window goes on when the check reaches Redis
 * - `newWindow`: nobody waits, and the check may begin a window
 */
export type KeyAssumption = 'inWindow' | 'newWindow' | 'unknown';

/** Checks of one key with the same overrides, in their order. */
export interface CheckBatch {
  readonly names: KeyNames;
  readonly overrides: Overrides;
  /** The waiters of the key here, if there are any. They show whether Redis has lost its queue. */
  readonly waiting: KnownWaiting | undefined;
  /** If the key needs more names than the assumption gives, the batch is sent again with all. Default: `unknown`. */
  readonly assumption?: KeyAssumption;
  readonly checks: readonly BatchedCheck[];
  /** Whether all of its checks are plain. */
  readonly arePlain: boolean;
  /** The traces of its checks; undefined if none is traced. */
  readonly traces?: readonly RequestTrace[] | undefined;
}

export interface CheckCircumstances {
  /** The call may have run before. */
  readonly isSentAgain: boolean;
  /** Redis may have no memory left. Without this hint a full Redis also refuses existing keys. */
  readonly mayBeFull: boolean;
  /** The names are in several slots of a cluster, so Redis does not take them as KEYS. */
  readonly hasSeveralSlots: boolean;
  /** Redis's time for calendars, as far as it is known, in milliseconds since 1970. */
  readonly time: number;
}

/** What a check with a place in the queue needs to know to wait. */
export interface QueueState {
  /** The limits in force, as Redis writes them. */
  readonly limits: string;
  /** The number of the last wake; 0 if there was none. */
  readonly wakeNumber: number;
  /** When Redis ran the call, by its clock, in milliseconds since 1970. */
  readonly at: number;
}

export interface CheckBatchReply {
  /** Until the window ends or a hold lapses, or until there may be room sooner. 0: there is room for waiters now. */
  readonly millisToRoom: number;
  /** What the limits have left after these checks. */
  readonly quota: Quota;
  /** The same with the limits that a group has to itself; undefined if no check has such a group. */
  readonly quotaOf?: ((list: QueueList | undefined) => Quota) | undefined;
  /** Undefined if no check has a place in the queue. */
  readonly queueState?: QueueState | undefined;
  /** For each check, in their order: one of {@link VERDICT}, or the ticket of its place in the queue. */
  readonly verdicts: readonly number[];
  /** In which lists the places are that checks have taken over, by the numbers of the checks. */
  readonly listsOfPlaces?: ReadonlyMap<number, QueueList | undefined> | undefined;
  /** Too much was assumed of the key. */
  readonly neededAllNames?: boolean;
}

const NAMES_FOR = {
  inWindow: keysInWindow,
  newWindow: keysForNewWindow,
  unknown: keysOf,
} as const;

/**
 * KEYS and ARGV of `lua/check.lua`. The limits of the first batch's key are those of the call.
 * @param batches one at least, ordered by their assumptions: `inWindow`, `newWindow`, `unknown`
 * @returns `readsFirst`: each name is read before any is written
 */
export function encodeChecks(
  settings: CallerSettings,
  batches: readonly CheckBatch[],
  { isSentAgain, mayBeFull, hasSeveralSlots, time }: CheckCircumstances,
): { readonly keys: string[]; readonly args: (string | number)[]; readonly readsFirst: boolean } {
  const needsAllNames = isSentAgain || mayBeFull;
  const keys: string[] = [];
  const limits: KeyLimits[] = [];
  const assumptions: KeyAssumption[] = [];
  const counts = { inWindow: 0, newWindow: 0, unknown: 0 };
  for (const { names, assumption = 'unknown' } of batches) {
    const assumed = needsAllNames ? 'unknown' : assumption;
    assumptions.push(assumed);
    counts[assumed] += 1;
    keys.push(...NAMES_FOR[assumed](names));
    limits.push(settings.limitsOf(names.key));
  }
  const [first] = limits;
  const [{ names } = {}] = batches;
  if (!first || !names) throw new Error('a call without a batch');
  const args = [
    ...sharedArguments(settings, names, first, time),
    (isSentAgain ? 1 : 0) + (mayBeFull ? 2 : 0),
    counts.inWindow,
    counts.newWindow,
    // Most calls have one plain check for each key.
    '',
  ];
  const end = args.length;
  if (hasSeveralSlots) args.push(keys.length, ...keys.splice(0));
  let shapes = '';
  let areSingle = true;
  for (const [i, batch] of batches.entries()) {
    const ofKey = limits[i] ?? first;
    const special = encodeSpecial(batch, assumptions[i] === 'unknown', ofKey, settings);
    const ownLimits = ofKey === first ? '' : `=${encodeRules(ofKey, time)}`;
    areSingle &&= batch.checks.length === 1 && ownLimits === '' && special === '';
    shapes += `${i === 0 ? '' : ' '}${batch.checks.length}${ownLimits}${special && '/'}`;
    if (special) args.push(special);
    for (const { requestId } of batch.checks) args.push(requestId);
  }
  if (!areSingle) args[end - 1] = shapes;
  return { keys, args, readsFirst: counts.inWindow === batches.length };
}

/**
 * What `lua/lib/checks.lua` reads of a batch; '' if there is nothing to say, as of most plain checks.
 * @param mayHaveWaiters nothing is assumed of the key
 */
function encodeSpecial(
  { arePlain, overrides, waiting, checks }: CheckBatch,
  mayHaveWaiters: boolean,
  { ceilings }: KeyLimits,
  { maxHoldsPerKey, maxGroupsPerKey }: CallerSettings,
): string {
  // A plain check has a group for those who wait only.
  const saysRequests = !arePlain || (mayHaveWaiters && checks.some(hasList));
  if (!saysRequests && !ceilings && !waiting) return '';
  const maxHolds = checks.some(({ request }) => isHeld(request)) ? maxHoldsPerKey : undefined;
  // Other replicas may have rules with limits of groups.
  const namesGroup = checks.some(({ request: { list } }) => list?.kind === 'group');
  const maxGroups = saysRequests && namesGroup ? maxGroupsPerKey : undefined;
  const ofBatch = JSON.stringify({ ceilings, ...overrides, waiting, maxHolds, maxGroups });
  if (!saysRequests) return ofBatch;
  const said = checks.map(({ request, number }) => JSON.stringify(sayRequest(request, { number })));
  const requests = said.every((each) => each === said[0]) ? said[0] : `[${said.join(',')}]`;
  if (requests === '{}') return ofBatch;
  return `${ofBatch.slice(0, -1)}${ofBatch === '{}' ? '' : ','}"requests":${requests}}`;
}

function hasList({ request }: BatchedCheck): boolean {
  return request.list !== undefined;
}

/** The reply for a batch that needs all names. */
export const NEEDS_ALL_NAMES = null;

/** What `lua/check.lua` replies. */
export type CheckReplies = readonly (number | string | Error | typeof NEEDS_ALL_NAMES)[];

/** What a batch's reply has in place of the maximum. */
interface LimitsSaid extends Partial<Omit<QueueState, 'limits'>>, Pick<QueueState, 'limits'> {
  readonly unclaimed?: number;
  readonly groups?: UsedOfGroups;
  /** By the numbers of the checks, which scripts count from 1. */
  readonly places?: Readonly<Record<string, SaidList>>;
}

/**
 * @param reply of `lua/check.lua`
 * @param limitsOf the limits of the caller's rules, which are in force where the reply names no others
 * @param onUnclaimed gets the number of unclaimed approvals that have lapsed
 * @returns for each batch, in their order, its reply, or the error with which it failed alone
 */
export function decodeCheckReplies(
  batches: readonly CheckBatch[],
  reply: CheckReplies,
  limitsOf: LimitsOf,
  onUnclaimed: (count: number) => void,
): (CheckBatchReply | Error | typeof NEEDS_ALL_NAMES)[] {
  let position = 0;
  return batches.map(({ checks, names }) => {
    const micros = reply[position];
    if (micros === undefined) return new Error('check.lua left a batch unanswered');
    if (micros === NEEDS_ALL_NAMES || micros instanceof Error) {
      position += 1;
      return micros;
    }
    const max = reply[position + 1] as number | string;
    const used = reply[position + 2] as UsedOfLimits;
    const end = position + HEAD + checks.length;
    const verdicts = reply.slice(position + HEAD, end) as number[];
    position = end;
    const millisToRoom = Number(micros) / 1000;
    if (typeof max === 'number') {
      const [{ windowMillis, algorithm }] = limitsOf(names.key).limits;
      const quota = quotaIn([ownLimit(windowMillis, max, algorithm)], used, millisToRoom);
      return { millisToRoom, quota, verdicts };
    }
    const { limits, wakeNumber, at, unclaimed, places, groups } = JSON.parse(max) as LimitsSaid;
    if (unclaimed !== undefined) onUnclaimed(unclaimed);
    const queueState =
      wakeNumber === undefined || at === undefined ? undefined : { limits, wakeNumber, at };
    const quotaOf = quotasIn(limits, used, groups, millisToRoom);
    const listsOfPlaces =
      places &&
      new Map(Object.entries(places).map(([i, list]) => [Number(i) - 1, listOfPlace(list)]));
    const quota = quotaOf();
    return {
      ...{ millisToRoom, quota, queueState, verdicts, listsOfPlaces },
      ...(groups && { quotaOf }),
    };
  });
}
