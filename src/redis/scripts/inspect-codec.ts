import type { FurtherState } from '../../limiter/further-limits.js';
import type { Limits } from '../../limiter/limiter.js';
import type { KeyNames } from '../key-names.js';
import { furtherStatesIn } from './further-codec.js';

export interface InspectReply {
  readonly limits: Limits;
  readonly approved: number;
  readonly denied: number;
  readonly waiting: number;
  readonly held: number;
  readonly pausedMillis: number;
  /** Undefined if there are none. */
  readonly further?: readonly FurtherState[];
}

/** The KEYS of `lua/inspect.lua` for one limiter key. */
export function keysToInspect({ state, waiting, replicas }: KeyNames): string[] {
  return [state, waiting, replicas];
}

/** How many numbers there are for a key that exists, and then how many texts. */
const NUMBERS = 8;
const TEXTS = 2;
/** How many fields that is, which `lua/examine.lua` replies first. */
export const INSPECTED_FIELDS = NUMBERS + TEXTS;

/** What `lua/inspect.lua` replies. */
export type InspectReplies = readonly (InspectedFields | Error)[];

/** Numbers, then texts; empty if there is no such key. */
export type InspectedFields = readonly (number | string)[];

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

function isInstance(reply: unknown): reply is InspectedFields {
  if (!Array.isArray(reply)) return false;
  if (reply.length === 0) return true;
  if (reply.length !== INSPECTED_FIELDS) return false;
  return reply.every((field, i) => typeof field === (i < NUMBERS ? 'number' : 'string'));
}

/** @returns undefined if there is no such key */
export function decodeInstance(reply: InspectedFields): InspectReply | undefined {
  if (reply.length === 0) return undefined;
  const [windowMillis = 0, maxRequests = 0, maxRequestsInQueue = 0, ...counts] = reply.slice(
    0,
    NUMBERS,
  ) as number[];
  const [approved = 0, denied = 0, waiting = 0, held = 0, pausedMillis = 0] = counts;
  const limits = { windowMillis, maxRequests, maxRequestsInQueue };
  const [furtherLimits = '', taken = ''] = reply.slice(NUMBERS) as string[];
  const further = furtherStatesIn(furtherLimits, taken);
  const state = { limits, approved, denied, waiting, held, pausedMillis };
  return further ? { ...state, further } : state;
}
