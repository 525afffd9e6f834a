import type { KeyNames } from '../key-names.js';

/** The places of a replica in the queue of one key, for which it has a lease. */
export interface LeasedPlaces {
  readonly names: KeyNames;
  /** How many the replica knows of. */
  readonly places: number;
}

/** The KEYS of `lua/renew.lua` for one limiter key. */
export function keysToRenew({ names }: LeasedPlaces): string[] {
  const { state, queue, waiting, replicas } = names;
  return [state, queue, waiting, replicas];
}

/** @returns those whose leases were not renewed */
export function decodeNotRenewed<Leased>(leased: readonly Leased[], reply: unknown): Leased[] {
  const numbers = new Set(reply as readonly number[]);
  return leased.filter((_, i) => numbers.has(i + 1));
}
