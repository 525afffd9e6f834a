import type { KeyLimits, OverrideCeilings } from '../../src/limiter/limiter.js';
import { type Limit, ownLimit } from '../../src/limiter/limits.js';

/** A limit that the rules list besides the key's own. */
export interface FurtherLimit extends Limit {
  readonly name: string;
}

/** The limits of a key in the words of the rules: its own limit, and the further ones. */
export interface DeclaredLimits {
  readonly windowMillis: number;
  readonly maxRequests: number;
  readonly maxRequestsInQueue: number;
  readonly further?: readonly FurtherLimit[] | undefined;
  readonly ceilings?: OverrideCeilings | undefined;
}

const known = new WeakMap<DeclaredLimits, KeyLimits>();

/** Returns what a limiter has to know of a key with these limits: the same object for the same argument. */
export function keyLimits(declared: DeclaredLimits): KeyLimits {
  const before = known.get(declared);
  if (before) return before;
  const { windowMillis, maxRequests, maxRequestsInQueue, further = [], ceilings } = declared;
  const limits = [ownLimit(windowMillis, maxRequests), ...further] as const;
  const made = { limits, maxRequestsInQueue, ceilings };
  known.set(declared, made);
  return made;
}
