import type { Limiter } from '../../limiter/limiter.js';
import type { Access } from '../callers/access.js';
import type { RequestContext } from '../request-context.js';
import { type KeyRules, rejectUnknownKey } from './unknown-keys.js';

interface PauseParts extends PauseRights {
  readonly limiter: Pick<Limiter, 'pause'>;
}

/** How a key is to be paused; see `Limiter.pause`. */
export interface AskedPause {
  readonly pauseMillis: number;
  readonly canShorten?: boolean | undefined;
}

/** What says who may pause keys. */
export interface PauseRights extends KeyRules {
  readonly access: Pick<Access, 'demand'>;
}

/**
 * Pauses a key.
 * @returns how many milliseconds it is paused for
 * @throws ServiceError SCOPE_MISSING if neither the caller's scopes nor the key's rules allow it, KEY_UNKNOWN as for a
 *   check
 */
export type Pause = (key: string, asked: AskedPause, context: RequestContext) => Promise<number>;

export function pauseBy({ limiter, ...rights }: PauseParts): Pause {
  return async (key, { pauseMillis, canShorten }, context) => {
    demandPauseRight(key, rights, context);
    return limiter.pause(key, pauseMillis, canShorten);
  };
}

/**
 * A rule may let callers with only the scope `check` pause its keys, and report what remains of their limits.
 * @throws ServiceError as a pause
 */
export function demandPauseRight(
  key: string,
  { policyOf, access, settings }: PauseRights,
  context: RequestContext,
): void {
  const policy = policyOf(key);
  if (!policy.requestsCanPause) access.demand('configure', context);
  rejectUnknownKey(policy, settings);
}
