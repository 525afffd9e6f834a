import type { Limiter, Peek } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { denyingLimit, type NamedLimit } from '../denying-limit.js';
import { withCountedLimits } from './counted-limits.js';
import { type AskedPeek, inItsList } from './lists-of-checks.js';
import { rejectForbiddenHold } from './parameter-rights.js';
import { type KeyRules, rejectUnknownKey } from './unknown-keys.js';

interface PeekParts extends KeyRules {
  readonly limiter: Pick<Limiter, 'peek'>;
}

/** What a check would get, and what applies to its key. */
export interface Peeked {
  readonly peek: Peek;
  readonly policy: KeyPolicy;
  /** The limit that would deny the check, if its key has several. */
  readonly limit?: NamedLimit | undefined;
}

/**
 * Says what a check would get. It is no decision: no metric counts it, and it has no span.
 * @throws ServiceError as for a check; as `Limiter.peek`
 */
export type PeekCheck = (asked: AskedPeek) => Promise<Peeked>;

export function peekBy({ limiter, policyOf, settings }: PeekParts): PeekCheck {
  return async (asked) => {
    const policy = policyOf(asked.key);
    rejectUnknownKey(policy, settings);
    rejectForbiddenHold(asked, policy);
    const request = inItsList(asked, policy);
    const peek = withCountedLimits(await limiter.peek(request), request.list);
    return { peek, policy, limit: denyingLimit(peek, policy, request.hits) };
  };
}
