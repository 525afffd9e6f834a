import type { CheckRequest, PeekRequest, RefundRequest } from '../../limiter/limiter.js';
import { DEFAULT_WEIGHT, type QueueList } from '../../limiter/queue-order.js';
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
export interface AskedCheck extends Omit<CheckRequest, 'list'>, NamedList {}

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
  { queueOrder }: Pick<KeyPolicy, 'queueOrder'>,
): Omit<Asked, keyof NamedList> & { readonly list?: QueueList | undefined } {
  // Nearly all checks are of keys without an order.
  if (!queueOrder && asked.lane === undefined && asked.group === undefined) return asked;
  const { lane, group, ...others } = asked;
  return { ...others, list: listOf({ lane, group }, queueOrder) };
}

function listOf({ lane, group }: NamedList, order: KeyPolicy['queueOrder']): QueueList | undefined {
  if (lane !== undefined && order?.kind !== 'lanes') {
    throw invalidParameter('lane', 'be left out: the key has no lanes');
  }
  if (group !== undefined && order?.kind !== 'fair') {
    throw invalidParameter('group', 'be left out: the key has no fair groups');
  }
  if (order?.kind === 'lanes') {
    const { lanes } = order;
    const named = lane === undefined ? lanes.at(-1) : lanes.find(({ name }) => name === lane);
    if (named) return { kind: 'lane', ...named };
    throw invalidParameter('lane', `be one of ${lanes.map(({ name }) => name).join(', ')}`);
  }
  if (!order) return undefined;
  const { maxRequestsInQueuePerGroup: maxRequests, weights } = order;
  const name = group ?? NO_GROUP;
  return { kind: 'group', name, weight: weights.get(name) ?? DEFAULT_WEIGHT, maxRequests };
}
