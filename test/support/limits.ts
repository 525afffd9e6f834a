import type { KeyLimits, OverrideCeilings } from '../../src/limiter/limiter.js';
import { type Algorithm, DEFAULT_ALGORITHM } from '../../src/limiter/kinds/kinds.js';
import { type Limit, ownLimit } from '../../src/limiter/limits.js';

/** A limit that the rules list besides the key's own. */
export interface FurtherLimit extends Omit<Limit, 'algorithm'> {
  readonly name: string;
  /** Fixed windows if it is omitted. */
  readonly algorithm?: Algorithm | undefined;
}

/** The limits of a key in the words of the rules: its own limit, and the further ones. */
export interface DeclaredLimits {
  readonly windowMillis: number;
  readonly maxRequests: number;
  readonly maxRequestsInQueue: number;
  /** Of its own limit: fixed windows if it is omitted. */
  readonly algorithm?: Algorithm | undefined;
  readonly further?: readonly FurtherLimit[] | undefined;
  readonly ceilings?: OverrideCeilings | undefined;
}

const known = new WeakMap<DeclaredLimits, KeyLimits>();

/** Returns what a limiter has to know of a key with these limits: the same object for the same argument. */
export function keyLimits(declared: DeclaredLimits): KeyLimits {
  const before = known.get(declared);
  if (before) return before;
  const { windowMillis, maxRequests, maxRequestsInQueue, algorithm, ceilings } = declared;
  const { further = [] } = declared;
  const own = ownLimit(windowMillis, maxRequests, algorithm);
  const limits = [own, ...further.map(furtherLimit)] as const;
  const made = { limits, maxRequestsInQueue, ceilings };
  known.set(declared, made);
  return made;
}

/** Returns a further limit as a limiter knows it. */
export function furtherLimit({ algorithm = DEFAULT_ALGORITHM, ...limit }: FurtherLimit): Limit {
  return { ...limit, algorithm };
}

/** Further limits of several kinds, some of which keep what is released. */
export function furtherLimits(windowMillis: number): FurtherLimit[] {
  const limit = (name: string, more: Partial<FurtherLimit>): FurtherLimit => {
    return { name, windowMillis, maximum: 9, counts: 'hits', keepsReleased: false, ...more };
  };
  const algorithm = { name: 'sliding_window', steps: 5 } as const;
  return [
    limit('a', {}),
    limit('b', { counts: 'requests', keepsReleased: true }),
    limit('c', { algorithm }),
    limit('d', { keepsReleased: true, algorithm }),
  ];
}
