import type { InstanceState } from '../../limiter/limiter.js';
import type { KeyNames } from '../shared/key-names.js';
import { limitsIn, limitStatesIn } from './limits-codec.js';

/** What Redis says of a key. */
export type InspectReply = Omit<InstanceState, 'key'>;

/** The KEYS of `lua/inspect.lua` for one limiter key. */
export function keysToInspect({ state, records, replicas }: KeyNames): string[] {
  return [state, records, replicas];
}

/** What `lua/inspect.lua` replies for a key: alternately a name and its value; empty if there is no such key. */
export type NamedFields = readonly unknown[];

/** What `lua/inspect.lua` replies. */
export type InspectReplies = readonly (NamedFields | Error)[];

/** @returns for each key its state, nothing if there is none, or its error */
export function decodeInstances(replies: InspectReplies): (InspectReply | undefined | Error)[] {
  if (!Array.isArray(replies)) throw new Error('the reply of inspect is no list');
  return replies.map((reply) => {
    if (reply instanceof Error) return reply;
    try {
      return decodeInstance(fieldsIn(reply));
    } catch (error) {
      return error as Error;
    }
  });
}

/** @throws Error if a field is missing or of another type */
export function decodeInstance(fields: Fields | undefined): InspectReply | undefined {
  if (!fields) return undefined;
  const { limits, maxRequestsInQueue } = limitsIn(fields.text('limits'));
  return {
    limits: limitStatesIn(limits, fields.text('used')),
    maxRequestsInQueue,
    denied: fields.number('denied'),
    waiting: fields.number('waiting'),
    held: fields.number('held'),
    pausedMillis: fields.number('pause_left'),
  };
}

/** The fields of a reply, by name. Each throws an Error if there is no such field of its type. */
export interface Fields {
  number(name: string): number;
  text(name: string): string;
  list(name: string): readonly (string | number)[];
}

/**
 * @returns undefined if there is no such key
 * @throws Error if the reply is no list
 */
export function fieldsIn(reply: unknown): Fields | undefined {
  if (!Array.isArray(reply)) throw new Error('the reply for a key is no list');
  if (reply.length === 0) return undefined;
  const values = new Map<unknown, unknown>();
  for (let i = 0; i < reply.length; i += 2) values.set(reply[i], reply[i + 1]);
  const field = <T>(name: string, is: (value: unknown) => value is T): T => {
    const value = values.get(name);
    if (!is(value)) throw new Error(`the reply for a key has no such field: ${name}`);
    return value;
  };
  return {
    number: (name) => field(name, (value) => typeof value === 'number'),
    text: (name) => field(name, (value) => typeof value === 'string'),
    list: (name) => field(name, (value): value is (string | number)[] => Array.isArray(value)),
  };
}
