import type { CheckRequest, Decision } from '../../limiter/limiter.js';
import type { RequestContext, Scope } from '../request-context.js';

/** What a request enters with: a scope of its token; for the metrics `debug`, also while the tokens are gone. */
export type EntryScope = Scope | 'metrics';

/** The permissions of callers. All but the first ask of a caller who has entered. */
export interface Access {
  /**
   * Lets a request in whose token has `scope`, and notes its caller.
   * @throws ServiceError TOKEN_REQUIRED, TOKEN_UNKNOWN or SCOPE_MISSING
   */
  enter(scope: EntryScope, context: RequestContext): void;
  /** @throws ServiceError SCOPE_MISSING if the caller lacks one more scope */
  demand(scope: Scope, context: RequestContext): void;
  has(scope: Scope, context: RequestContext): boolean;
  /** @throws ServiceError KEY_NOT_ALLOWED if the caller may not touch the key */
  demandKey(key: string, context: RequestContext): void;
  mayUse(key: string, context: RequestContext): boolean;
  /** Whether the caller may see all keys, and so their number. */
  mayUseAll(context: RequestContext): boolean;
  /**
   * Has a check that can wait do so in one of the caller's places.
   * @param check gets the request, with `noPlace` if the caller has no place left
   * @throws ServiceError TOO_MANY_WAITERS_OF_CALLER if it would have to wait then
   */
  withPlace(
    context: RequestContext,
    request: CheckRequest,
    check: (request: CheckRequest) => Promise<Decision>,
  ): Promise<Decision>;
}

/** Without tokens everybody has every scope, every key, and any place. */
export function openAccess(): Access {
  return {
    enter: () => undefined,
    demand: () => undefined,
    has: () => true,
    demandKey: () => undefined,
    mayUse: () => true,
    mayUseAll: () => true,
    withPlace: (_context, request, check) => check(request),
  };
}
