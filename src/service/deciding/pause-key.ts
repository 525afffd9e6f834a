import type { Limiter } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type { Access } from '../callers/access.js';
import type { RequestContext } from '../request-context.js';

/**
 * Pauses a key.
 * @param millis as for `Limiter.pause`
 * @throws ServiceError SCOPE_MISSING if neither the caller's scopes nor the key's rules allow it
 */
export type Pause = (key: string, millis: number, context: RequestContext) => Promise<void>;

/** @returns what pauses keys. A rule may let callers pause its keys that have only the scope of checks. */
export function pauseBy(
  limiter: Pick<Limiter, 'pause'>,
  policyOf: (key: string) => KeyPolicy,
  access: Pick<Access, 'demand'>,
): Pause {
  return async (key, millis, context) => {
    if (!policyOf(key).requestsCanPause) access.demand('configure', context);
    await limiter.pause(key, millis);
  };
}
