import type { Limiter } from '../../limiter/limiter.js';
import { type AskedRefund, inItsList } from './lists-of-checks.js';
import { type KeyRules, rejectUnknownKey } from './unknown-keys.js';

interface RefundParts extends KeyRules {
  readonly limiter: Pick<Limiter, 'refund'>;
}

/**
 * Gives hits back without the approvals that took them, as far as the limits of the key are fixed windows.
 * @throws ServiceError as for a check
 */
export type Refund = (asked: AskedRefund) => Promise<void>;

export function refundBy({ limiter, policyOf, settings }: RefundParts): Refund {
  return async (asked) => {
    const policy = policyOf(asked.key);
    rejectUnknownKey(policy, settings);
    await limiter.refund(inItsList(asked, policy));
  };
}
