import type { InstanceDetail, QueuedRequest, QueueingReplica } from '../../limiter/limiter.js';
import { MOST_LISTS_SHOWN } from '../../limiter/queue-order.js';
import type { KeyNames } from '../shared/key-names.js';
import { decodeInstance, fieldsIn } from './inspect-codec.js';
import { limitsIn } from './limits-codec.js';
import { decodeListId } from './requests-codec.js';

/** What Redis says of a key, without its names, which are known. */
export type ExaminedKey = Omit<InstanceDetail, 'key' | 'names'>;

/** The KEYS of `lua/examine.lua`. */
export function keysToExamine({ state, queue, records, replicas }: KeyNames): string[] {
  return [state, queue, records, replicas];
}

/** KEYS and ARGV of `lua/examine.lua`. */
export function encodeExamination(
  names: KeyNames,
  mostQueued: number,
): { readonly keys: string[]; readonly args: number[] } {
  return { keys: keysToExamine(names), args: [mostQueued, MOST_LISTS_SHOWN] };
}

/**
 * @param reply of `lua/examine.lua`
 * @returns undefined if there is no such key
 */
export function decodeExamined(reply: unknown): ExaminedKey | undefined {
  const fields = fieldsIn(reply);
  const inspected = decodeInstance(fields);
  if (!fields || !inspected) return undefined;
  return {
    ...inspected,
    overridden: {
      ...limitsIn(fields.text('limits')).overridden,
      windowMillis: fields.number('window_is_set') === 1,
    },
    isRecovering: fields.number('is_recovering') === 1,
    queue: inGroups(fields.list('queue'), 2).map(
      ([replica, waitedMillis]) => ({ replica, waitedMillis }) as QueuedRequest,
    ),
    ...listsIn(fields.list('lists'), fields.number('list_count')),
    replicas: inGroups(fields.list('replicas'), 3).map(
      ([replica, places, leaseMillis]) => ({ replica, places, leaseMillis }) as QueueingReplica,
    ),
  };
}

/** Nothing of a queue with one list. */
function listsIn(
  texts: readonly unknown[],
  listCount: number,
): Pick<InstanceDetail, 'lists' | 'listCount'> {
  if (listCount === 0) return {};
  const lists = inGroups(texts, 3).map(([id, waiting, oldestMillis]) => ({
    ...decodeListId(String(id)),
    waiting: Number(waiting),
    oldestMillis: Number(oldestMillis),
  }));
  return { lists, listCount };
}

/** Lists that begin with one group each. */
function inGroups<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: list.length / size }, (_, i) => list.slice(i * size));
}
