import type {
  CheckRequest,
  PeekRequest,
  RefundRequest,
  RemainingReport,
} from '../../limiter/limiter.js';
import { DEFAULT_WEIGHT, type Lane, type QueueList } from '../../limiter/queue-order.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { invalidParameter } from '../errors.js';

/** How a check names the list that it belongs to, in a key that has several. */
export interface NamedList {
  /** Undefined: the last lane, if the key has lanes. */
  readonly lane?: string | undefined;
  /** Undefined: the group '', if the key has fair groups. */
  readonly group?: string | undefined;
}

/** A check as a caller asks for it, before the rules of its key are known. */
export interface AskedCheck extends Omit<CheckRequest, 'list'>, NamedList {
  /** As `maxRequests`, unless that is given or a rule sets the maximum of the key. */
  readonly defaultMaxRequests?: number | undefined;
}

/** A peek as a caller asks for it. */
export interface AskedPeek extends Omit<PeekRequest, 'list'>, NamedList {}

/** Hits that a caller gives back, before the rules of the key are known. */
export interface AskedRefund extends Omit<RefundRequest, 'list'>, NamedList {}

/** The group of checks that name none. */
const NO_GROUP = '';

/**
 * Returns a check, a peek or a refund with its list, which every one of a key with lanes or groups has, whether it waits or not.
 * @throws ServiceError INVALID_PARAMETER if it names a lane or a group that the key does not have
 */
export function inItsList<Asked extends NamedList>(
  asked: Asked,
  { queueOrder, limits }: Pick<KeyPolicy, 'queueOrder' | 'limits'>,
): Omit<Asked, keyof NamedList> & { readonly list?: QueueList | undefined } {
  // Nearly all checks are of keys without an order.
  if (!queueOrder && asked.lane === undefined && asked.group === undefined) return asked;
  const { lane, group, ...others } = asked;
  const list = listOf({ lane, group }, queueOrder);
  const hasLimits = list?.kind === 'group' && limits.some(({ perGroup }) => perGroup);
  return { ...others, list: hasLimits ? { ...list, hasLimits } : list };
}

/**
 * Returns the group whose limit a report is about; undefined if all share it.
 * @throws ServiceError INVALID_PARAMETER if it names a group, and a limit that all share
 */
export function groupOfReport(
  { limit: wanted, group }: RemainingReport,
  { limits }: Pick<KeyPolicy, 'limits'>,
): string | undefined {
  const limit = limits.find(({ name }) => name === wanted);
  // The limiter rejects a limit that the key does not have, and names all that it has.
  const isOfGroup = limit ? limit.perGroup : limits.some(({ perGroup }) => perGroup);
  if (isOfGroup) return group ?? NO_GROUP;
  if (group === undefined) return undefined;
  throw invalidParameter('group', 'be left out: all groups share the limit');
}

function listOf({ lane, group }: NamedList, order: KeyPolicy['queueOrder']): QueueList | undefined {
  if (lane !== undefined && !order?.lanes) {
    throw invalidParameter('lane', 'be left out: the key has no lanes');
  }
  if (group !== undefined && order?.kind !== 'fair') {
    throw invalidParameter('group', 'be left out: the key has no fair groups');
  }
  const ofLane = order?.lanes && laneOf(lane, order.lanes);
  if (order?.kind !== 'fair') return ofLane && { kind: 'lane', ...ofLane };
  const { maxRequestsInQueuePerGroup: maxRequests, weights } = order;
  const name = group ?? NO_GROUP;
  const weight = weights.get(name) ?? DEFAULT_WEIGHT;
  const headStartMillis = ofLane?.headStartMillis;
  return { kind: 'group', name, weight, maxRequests, headStartMillis };
}

/** @throws ServiceError INVALID_PARAMETER */
function laneOf(name: string | undefined, lanes: readonly Lane[]): Lane | undefined {
  const named = name === undefined ? lanes.at(-1) : lanes.find((lane) => lane.name === name);
  if (named) return named;
  throw invalidParameter('lane', `be one of ${lanes.map((lane) => lane.name).join(', ')}`);
}
