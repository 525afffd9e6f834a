import type { ApprovalObserver, KeyLimits, LimitsOf } from '../../limiter/limiter.js';
import type { KeyNames } from '../shared/key-names.js';
import { encodeRules } from './limits-codec.js';

/** The caller's settings, which every script call has. */
export interface CallerSettings {
  /** The name of this replica, unique among all that share the Redis. */
  readonly replicaId: string;
  /** How long the waiters of a silent replica keep their places. */
  readonly leaseMillis: number;
  readonly limitsOf: LimitsOf;
  /** How scripts send wakes, see `KeyNaming.wakeArgument`. */
  readonly wakeArgument: string;
  /** The most ids of approvals that are kept of one key's window. */
  readonly maxIdsPerKey: number;
  /** The most approvals of one key that are held. */
  readonly maxHoldsPerKey: number;
  readonly maxGroupsPerKey: number;
  /**
   * What this replica knows of the time before a call, as `lua/lib/recovery.lua` reads it.
   * @param name a name in Redis that the call is about
   */
  readonly historyOf: (name: string) => string;
  /**
   * Redis's time, as far as this replica knows, in milliseconds since 1970.
   * @param name a name in Redis that the call is about
   */
  readonly timeOf: (name: string) => number;
  /** Is told what replies say of approvals. */
  readonly observer: ApprovalObserver;
}

/**
 * The start of ARGV. `calls.read` in `lua/lib/calls.lua` reads it.
 * @param names of the key, or of the first of several
 * @param limits of that key
 * @param time of Redis, for calendars
 */
export function sharedArguments(
  { replicaId, leaseMillis, wakeArgument, maxIdsPerKey, historyOf }: CallerSettings,
  names: KeyNames,
  limits: KeyLimits,
  time: number,
): readonly (string | number)[] {
  const history = historyOf(names.state);
  const rules = encodeRules(limits, time);
  return [replicaId, leaseMillis, rules, wakeArgument, maxIdsPerKey, history];
}

/** The KEYS of a limiter key for a plain check in a window that goes on: `key_names.IN_WINDOW` in `lua/lib/key-names.lua`. */
export function keysInWindow({ state, requests }: KeyNames): string[] {
  return [state, requests];
}

/** The KEYS of a limiter key for a plain check that may begin a window: `key_names.FOR_NEW_WINDOW` there. */
export function keysForNewWindow({ state, requests, pastRequests }: KeyNames): string[] {
  return [state, requests, ...pastRequests];
}

/** All KEYS of a limiter key. `key_names.read` in `lua/lib/key-names.lua` reads them. */
export function keysOf(names: KeyNames): string[] {
  const { state, requests, queue, records, replicas, pastRequests } = names;
  return [state, requests, queue, records, replicas, ...pastRequests];
}

/** `lua/lib/in-force.lua` fails a call with this, and with Redis's time. */
const STALE = /\bSTALE (\d+)/;

/**
 * Returns Redis's time in milliseconds since 1970 if a call failed because that is in no window of the calendars that the
 * call brought. Nothing has changed then, and the call is to be sent again with the windows for that time.
 * @returns undefined for another error
 */
export function timeOfStaleCall(error: unknown): number | undefined {
  const time = error instanceof Error ? STALE.exec(error.message)?.[1] : undefined;
  return time === undefined ? undefined : Number(time);
}

/**
 * Sends a call until its calendars hold Redis's time. The second attempt succeeds unless Redis's clock goes back meanwhile.
 * @param time of Redis, as far as it is known
 * @param send rejects with the error of the script
 */
export async function sendWithCalendars<Reply>(
  time: number,
  send: (time: number) => Promise<Reply>,
): Promise<Reply> {
  for (let known = time; ;) {
    try {
      return await send(known);
    } catch (error) {
      const said = timeOfStaleCall(error);
      if (said === undefined) throw error;
      known = said;
    }
  }
}
