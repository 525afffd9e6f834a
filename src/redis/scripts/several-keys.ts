import type { Quota } from '../../limiter/limiter.js';
import type { QueueList } from '../../limiter/queue-order.js';
import { parseClaim } from '../../limiter/request.js';
import { classifyFailure, toLimiterError } from '../availability/store-errors.js';
import type { KeyNames } from '../shared/key-names.js';
import { encodeRules, quotasIn, type UsedOfGroups, type UsedOfLimits } from './limits-codec.js';
import {
  type CallerSettings,
  keysOf,
  sharedArguments,
  timeOfStaleCall,
} from './shared-arguments.js';

type NotEmpty<Item> = readonly [Item, ...Item[]];

/**
 * Calls a script that may leave the last keys to the next call if the first ones take it long.
 * @param call replies for the first key at least
 */
export async function inSeveralCalls<Key, Reply>(
  keys: readonly Key[],
  call: (rest: NotEmpty<Key>) => Promise<readonly Reply[]>,
): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let rest = keys; isNotEmpty(rest); rest = keys.slice(replies.length)) {
    const more = await call(rest);
    if (more.length === 0) throw new Error('a script has left all keys unanswered');
    replies.push(...more);
  }
  return replies;
}

function isNotEmpty<Item>(items: readonly Item[]): items is NotEmpty<Item> {
  return items.length > 0;
}

/**
 * The replies of a script that replies for each of several limiter keys, with an error for each that failed.
 * @throws the first error, if none of them ran: the store has failed, and not a key
 */
export function replyForEach<Reply>(replies: readonly (Reply | Error)[]): (Reply | Error)[] {
  const [first] = replies;
  if (first instanceof Error && replies.every(isFailureOfStore)) throw first;
  return replies.map((reply) =>
    reply instanceof Error ? (toLimiterError(reply) as Error) : reply,
  );
}

function isFailureOfStore(reply: unknown): boolean {
  const failure = classifyFailure(reply);
  return failure !== 'fault' && failure !== 'full';
}

/** Requests for one key, by their claims. */
export interface KeyClaims {
  readonly names: KeyNames;
  /** At least 1, at most 1000. */
  readonly claims: readonly string[];
}

/**
 * KEYS and ARGV of `lua/withdraw.lua` and `lua/confirm.lua`. The limits of the first key are those of the call.
 * @param time of Redis, for calendars
 */
export function encodeKeyClaims(
  settings: CallerSettings,
  ofKeys: readonly [KeyClaims, ...KeyClaims[]],
  time: number,
): { readonly keys: string[]; readonly args: (string | number)[] } {
  const [{ names: first }] = ofKeys;
  const ofCall = settings.limitsOf(first.key);
  const said = ofKeys.map(({ names, claims }) => {
    const limits = settings.limitsOf(names.key);
    return {
      limits: limits === ofCall ? undefined : encodeRules(limits, time),
      requests: claims.map(parseClaim),
    };
  });
  return {
    keys: ofKeys.flatMap(({ names }) => keysOf(names)),
    args: [...sharedArguments(settings, first, ofCall, time), JSON.stringify(said)],
  };
}

/**
 * The replies to the keys, in their order, or their errors.
 * @param decode what the script says of a key
 * @throws the error of a key whose calendars do not hold Redis's time. Calling again for the others changes nothing
 */
function decodeEach<Reply>(reply: unknown, decode: (text: string) => Reply): (Reply | Error)[] {
  const replies = reply as (string | Error)[];
  const stale = replies.find((each) => timeOfStaleCall(each) !== undefined);
  if (stale instanceof Error) throw stale;
  return replies.map((each) => (each instanceof Error ? each : decode(each)));
}

/**
 * What `lua/withdraw.lua` replies.
 * @param onUnclaimed gets the number of unclaimed approvals that have lapsed
 * @returns for each key, in their order, how many were withdrawn or released, or its error
 */
export function decodeWithdrawn(
  reply: unknown,
  onUnclaimed: (count: number) => void,
): (number | Error)[] {
  return decodeEach(reply, (text) => {
    const { gone, unclaimed } = JSON.parse(text) as Record<'gone' | 'unclaimed', number>;
    if (unclaimed > 0) onUnclaimed(unclaimed);
    return gone;
  });
}

/** What `lua/confirm.lua` replies for a key: the first alone if there is no such key. */
interface ConfirmSaid {
  readonly mayBeTold: readonly boolean[];
  readonly microsToRoom?: number;
  readonly limits?: string;
  readonly used?: UsedOfLimits;
  readonly groups?: UsedOfGroups;
}

/** What has become of approvals of a key that were kept for their callers. */
export interface Confirmed {
  /** Whether the caller of each may be told. */
  readonly mayBeTold: readonly boolean[];
  /** What the key has left then for an approval of a list. Undefined if there is no such key. */
  readonly quotaOf: ((list: QueueList | undefined) => Quota) | undefined;
}

/** @returns for each key, in their order, what has become of its approvals, or its error */
export function decodeConfirmed(reply: unknown): (Confirmed | Error)[] {
  return decodeEach(reply, (text): Confirmed => {
    const { mayBeTold, microsToRoom, limits, used, groups } = JSON.parse(text) as ConfirmSaid;
    if (microsToRoom === undefined || limits === undefined || used === undefined) {
      return { mayBeTold, quotaOf: undefined };
    }
    return { mayBeTold, quotaOf: quotasIn(limits, used, groups, microsToRoom / 1000) };
  });
}

/** The places of a replica in the queue of one key, for which it has a lease. */
export interface LeasedPlaces {
  readonly names: KeyNames;
  /** How many the replica knows of. */
  readonly places: number;
  /** Whether any of them is kept for its caller. Default: false. */
  readonly keepsAny?: boolean;
  /** The number of the last wake that the replica knows of; undefined if it knows none. */
  readonly wakeNumber: number | undefined;
}

/** The KEYS of `lua/renew.lua` for one limiter key. */
export function keysToRenew({ names }: LeasedPlaces): string[] {
  return [names.replicas, names.state];
}
