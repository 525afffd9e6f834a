import { UnavailableError } from '../../limiter/errors.js';
import type { Peek, PeekRequest } from '../../limiter/limiter.js';
import { VERDICT } from './check-codec.js';
import { limitsIn, quotaIn, type UsedOfLimits } from './limits-codec.js';
import { sayRequest } from './requests-codec.js';
import type { CallerSettings } from './shared-arguments.js';

/** What `lua/peek.lua` replies. */
type PeekReply = readonly [
  microsToRoom: number,
  limits: string,
  used: UsedOfLimits,
  verdict: number,
  microsToTurn: number,
];

const REASONS: ReadonlyMap<number, 'too_many_hits' | 'paused'> = new Map([
  [VERDICT.tooManyHits, 'too_many_hits'],
  [VERDICT.paused, 'paused'],
]);

/** The argument of `lua/peek.lua` that is its own. */
export function encodePeek(
  request: PeekRequest,
  { limitsOf, maxHoldsPerKey: maxHolds }: Pick<CallerSettings, 'limitsOf' | 'maxHoldsPerKey'>,
): string {
  return JSON.stringify(
    sayRequest(request, { ceilings: limitsOf(request.key).ceilings, maxHolds }),
  );
}

/** @throws UnavailableError if the check could not be decided */
export function decodePeek(reply: unknown): Peek {
  const [microsToRoom, limits, used, verdict, microsToTurn] = reply as PeekReply;
  if (verdict === VERDICT.keyFull) throw new UnavailableError('key_full');
  const quota = quotaIn(limitsIn(limits).limits, used, microsToRoom / 1000);
  if (verdict === VERDICT.approved) return { outcome: 'approved', quota };
  const reason = REASONS.get(verdict) ?? 'limit_reached';
  return { outcome: 'denied', reason, quota, turnMillis: microsToTurn / 1000 };
}
