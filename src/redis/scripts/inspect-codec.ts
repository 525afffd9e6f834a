import type { Limits } from '../../limiter/limiter.js';
import type { KeyNames } from '../key-names.js';

export interface InspectReply {
  readonly limits: Limits;
  readonly approved: number;
  readonly denied: number;
  readonly waiting: number;
  readonly held: number;
  readonly pausedMillis: number;
}

/** The KEYS of `lua/inspect.lua` for one limiter key. */
export function keysToInspect({ state, waiting, replicas }: KeyNames): string[] {
  return [state, waiting, replicas];
}

/** How many numbers there are for a key that exists. */
const FIELDS = 8;

/** What `lua/inspect.lua` replies. */
export type InspectReplies = readonly (readonly number[] | Error)[];

/** @returns for each key its state, nothing if there is none, or its error */
export function decodeInstances(replies: InspectReplies): (InspectReply | undefined | Error)[] {
  if (!Array.isArray(replies)) throw new Error('the reply of inspect is no list');
  return replies.map((reply) => {
    if (reply instanceof Error) return reply;
    return isInstance(reply)
      ? decodeInstance(reply)
      : new Error('the reply of inspect is no state');
  });
}

function isInstance(reply: unknown): reply is readonly number[] {
  if (!Array.isArray(reply) || (reply.length !== 0 && reply.length !== FIELDS)) return false;
  return reply.every((field) => typeof field === 'number');
}

/** @returns undefined if there is no such key */
export function decodeInstance(reply: readonly number[]): InspectReply | undefined {
  if (reply.length === 0) return undefined;
  const [windowMillis = 0, maxRequests = 0, maxRequestsInQueue = 0, ...counts] = reply;
  const [approved = 0, denied = 0, waiting = 0, held = 0, pausedMillis = 0] = counts;
  const limits = { windowMillis, maxRequests, maxRequestsInQueue };
  return { limits, approved, denied, waiting, held, pausedMillis };
}
