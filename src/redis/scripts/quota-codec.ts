import type { FurtherQuota } from '../../limiter/further-limits.js';
import type { Quota } from '../../limiter/limiter.js';
import { furtherIn, numbersByName } from './further-codec.js';
import { overriddenWindowIn } from './shared-arguments.js';

/**
 * What is not left of a key's limits: a number, or, for a key with further limits, the text that `taken` in
 * `lua/lib/instance.lua` makes.
 */
export type TakenOfLimits = number | string;

/** What scripts say of a key's limits. */
export interface LimitsReply {
  /** Until waiters may have room. */
  readonly millisToRoom: number;
  readonly maxRequests: number;
  /** The limits in force, as Redis writes them; undefined if they are those of the caller's rules. */
  readonly limits?: string | undefined;
  readonly approved: TakenOfLimits;
}

/** What the limits of a key have left, as a script says. */
export function quotaIn({ millisToRoom, maxRequests, limits, approved }: LimitsReply): Quota {
  const windowMillis = limits === undefined ? undefined : overriddenWindowIn(limits);
  if (typeof approved === 'number') {
    const remaining = Math.max(0, maxRequests - approved);
    const quota = { maxRequests, remaining, resetMillis: millisToRoom };
    return windowMillis === undefined ? quota : { ...quota, windowMillis };
  }
  const [own = 0, micros = 0] = (approved.split(',')[0] ?? '').split(':').map(Number);
  return {
    maxRequests,
    remaining: Math.max(0, maxRequests - own),
    resetMillis: micros / 1000,
    further: furtherQuotasIn(limits ?? '', approved),
    ...(windowMillis === undefined ? undefined : { windowMillis }),
  };
}

function furtherQuotasIn(limits: string, taken: string): FurtherQuota[] {
  const numbers = numbersByName(taken);
  return furtherIn(limits).map((limit) => {
    const [ofLimit = 0, micros = 0] = numbers.get(limit.name) ?? [];
    return {
      ...limit,
      remaining: Math.max(0, limit.maximum - ofLimit),
      resetMillis: micros / 1000,
    };
  });
}
