import type { Settings } from '../../config/settings.js';
import type { Limiter } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { type AskedRefund, inItsList } from './lists-of-checks.js';
import { rejectUnknownKey } from './unknown-keys.js';

/** What refunds hits. */
interface RefundParts {
  readonly limiter: Pick<Limiter, 'refund'>;
  readonly policyOf: (key: string) => KeyPolicy;
  readonly settings: Pick<Settings, 'UNKNOWN_KEYS'>;
}

/**
 * Gives hits back without the approvals that took them, as far as the limits of the key are fixed windows.
 * @throws ServiceError as for a check
 */
export type Refund = (asked: AskedRefund) => Promise<void>;

/** Returns a function that refunds hits. */
export function refundBy({ limiter, policyOf, settings }: RefundParts): Refund {
  return async (asked) => {
    const policy = policyOf(asked.key);
    rejectUnknownKey(policy, settings);
    await limiter.refund(inItsList(asked, policy));
  };
}
