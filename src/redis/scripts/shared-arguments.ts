import type { Limits } from '../../limiter/limiter.js';
import type { KeyNames } from '../key-names.js';

/** What every call of a script says of its caller. */
export interface CallerSettings {
  /** Names this replica among all that share the Redis. */
  readonly replicaId: string;
  /** How long the waiters of a replica that is silent keep their places. */
  readonly leaseMillis: number;
  readonly limits: Limits;
  /** How scripts send wakes, see `KeyNaming.wakeArgument`. */
  readonly wakeArgument: string;
}

/** The start of ARGV, which `read_call` in `lua/lib/call.lua` reads. */
export function sharedArguments(settings: CallerSettings): readonly (string | number)[] {
  const { replicaId, leaseMillis, limits, wakeArgument } = settings;
  return [
    replicaId,
    leaseMillis,
    limits.windowMillis,
    limits.maxRequests,
    limits.maxRequestsInQueue,
    wakeArgument,
  ];
}

/** The KEYS of one limiter key, which `read_keys` in `lua/lib/keys.lua` reads. */
export function keysOf(names: KeyNames): string[] {
  const { state, requests, queue, waiting, replicas, pastRequests } = names;
  return [state, requests, queue, waiting, replicas, ...pastRequests];
}
