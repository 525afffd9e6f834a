import type { InstanceDetail, QueuedRequest, QueueingReplica } from '../../limiter/limiter.js';
import type { KeyNames } from '../key-names.js';
import { decodeInstance, INSPECTED_FIELDS, type InspectedFields } from './inspect-codec.js';

/** What Redis says of a key, without its names, which are known. */
export type ExaminedKey = Omit<InstanceDetail, 'key' | 'names'>;

/** What `lua/examine.lua` replies after what `lua/inspect.lua` also replies. */
type ExaminedFields = readonly [
  millisToWindowEnd: number,
  maxRequestsIsSet: number,
  maxRequestsInQueueIsSet: number,
  windowMillisIsSet: number,
  isHeld: number,
  queue: readonly (string | number)[],
  replicas: readonly (string | number)[],
];

/** What `lua/examine.lua` replies; empty if there is no such key. */
export type ExaminedReply =
  readonly [] | readonly [...inspected: InspectedFields, ...ExaminedFields];

/** The KEYS of `lua/examine.lua`. */
export function keysToExamine({ state, queue, waiting, replicas }: KeyNames): string[] {
  return [state, queue, waiting, replicas];
}

/** @returns undefined if there is no such key */
export function decodeExamined(reply: ExaminedReply): ExaminedKey | undefined {
  const inspected = decodeInstance(reply.slice(0, INSPECTED_FIELDS) as InspectedFields);
  if (!inspected || reply.length === 0) return undefined;
  const [millisToWindowEnd, maxIsSet, queueMaxIsSet, windowIsSet, isHeld, queue, replicas] =
    reply.slice(INSPECTED_FIELDS) as unknown as ExaminedFields;
  return {
    ...inspected,
    millisToWindowEnd,
    overridden: {
      maxRequests: maxIsSet === 1,
      maxRequestsInQueue: queueMaxIsSet === 1,
      windowMillis: windowIsSet === 1,
    },
    isHeld: isHeld === 1,
    queue: inGroups(queue, 2).map(
      ([replica, waitedMillis]) => ({ replica, waitedMillis }) as QueuedRequest,
    ),
    replicas: inGroups(replicas, 3).map(
      ([replica, places, leaseMillis]) => ({ replica, places, leaseMillis }) as QueueingReplica,
    ),
  };
}

/** Lists that begin with one group each. */
function inGroups<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: list.length / size }, (_, i) => list.slice(i * size));
}
