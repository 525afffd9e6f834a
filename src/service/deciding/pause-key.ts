import type { Settings } from '../../config/settings.js';
import type { Limiter } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type { Access } from '../callers/access.js';
import type { RequestContext } from '../request-context.js';
import { rejectUnknownKey } from './unknown-keys.js';

/** What pauses keys. */
interface PauseParts extends PauseRights {
  readonly limiter: Pick<Limiter, 'pause'>;
}

/** What says who may pause keys. */
export interface PauseRights {
  readonly policyOf: (key: string) => KeyPolicy;
  readonly access: Pick<Access, 'demand'>;
  readonly settings: Pick<Settings, 'UNKNOWN_KEYS'>;
}

/**
 * Pauses a key.
 * @param millis as for `Limiter.pause`
 * @throws ServiceError SCOPE_MISSING if neither the caller's scopes nor the key's rules allow it, KEY_UNKNOWN as for a
 *   check
 */
export type Pause = (key: string, millis: number, context: RequestContext) => Promise<void>;

/** Returns a function that pauses keys. */
export function pauseBy({ limiter, ...rights }: PauseParts): Pause {
  return async (key, millis, context) => {
    demandPauseRight(key, rights, context);
    await limiter.pause(key, millis);
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
