import type { KeyNames } from '../shared/key-names.js';

/** A name of a key that exists as long as anybody waits, beside the leases and the state. */
export type ThereWhileWaiting = 'queue' | 'records';

/** The places of a replica in the queue of one key, for which it has a lease. */
export interface LeasedPlaces {
  readonly names: KeyNames;
  /** How many the replica knows of. */
  readonly places: number;
  /** Whether any of them is kept for its caller. Default: false. */
  readonly keepsAny?: boolean;
  /** The number of the last wake that the replica knows of; undefined if it knows none. */
  readonly wakeNumber: number | undefined;
  /** The name whose existence the renewal checks. Checking one name at a time, alternately, takes half the time. */
  readonly lookFor: ThereWhileWaiting;
}

/** The KEYS of `lua/renew.lua` for one limiter key. */
export function keysToRenew({ names, lookFor }: LeasedPlaces): string[] {
  return [names.replicas, names.state, names[lookFor]];
}

/** A number that no wake has. */
const NO_NUMBER = -1;

/** Its ARGV for one limiter key. */
export function argumentsToRenew({
  places,
  keepsAny = false,
  wakeNumber,
}: LeasedPlaces): (string | number)[] {
  return [keepsAny ? `${places}+` : places, wakeNumber ?? NO_NUMBER];
}

/** @returns those whose leases were not renewed */
export function decodeNotRenewed<Leased>(leased: readonly Leased[], reply: unknown): Leased[] {
  const numbers = new Set(reply as readonly number[]);
  return leased.filter((_, i) => numbers.has(i + 1));
}
