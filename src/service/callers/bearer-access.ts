import { UnavailableError } from '../../limiter/errors.js';
import type { CheckRequest, Decision } from '../../limiter/limiter.js';
import { inPlace } from '../../limiter/request-places.js';
import type { ErrorCode, ErrorValues } from '../errors.js';
import type { RequestContext } from '../request-context.js';
import { type ServiceError, serviceError } from '../service-error.js';
import type { Access } from './access.js';
import type { Caller, Scope } from './caller.js';
import type { CallerPlaces } from './caller-places.js';
import type { RejectionReason, TokenRejections } from './token-rejections.js';
import type { Tokens } from './tokens.js';

/** @returns undefined for an unknown token */
type OwnerOf = (token: string) => Caller | undefined;

/**
 * Access for requests with a token of the right scope, for the right key: RFC 6750.
 * @param tokens read again for each request
 */
export function bearerAccess(
  tokens: { readonly current: Tokens },
  rejections: Pick<TokenRejections, 'record'>,
  places: Pick<CallerPlaces, 'take'>,
): Access {
  const rejection = <Code extends ErrorCode>(
    reason: RejectionReason,
    code: Code,
    values: ErrorValues<Code>,
  ): ServiceError => {
    rejections.record(reason);
    return serviceError(code, values);
  };

  const has = (scope: Scope, { caller }: RequestContext): boolean =>
    caller?.scopes.includes(scope) ?? false;

  const demand = (scope: Scope, context: RequestContext): void => {
    if (has(scope, context)) return;
    throw rejection('scope_missing', 'SCOPE_MISSING', { scope });
  };

  const enter = (scope: Scope, context: RequestContext, ownerOf: OwnerOf): void => {
    const token = tokenOf(context);
    if (token === undefined) throw rejection('token_required', 'TOKEN_REQUIRED', {});
    const caller = ownerOf(token);
    if (!caller) throw rejection('token_unknown', 'TOKEN_UNKNOWN', {});
    context.caller = caller;
    demand(scope, context);
  };

  return {
    enter: (scope, context) => {
      enter(scope, context, (token) => tokens.current.callerOf(token));
    },
    enterMetrics: (context) => {
      enter('debug', context, (token) => tokens.current.readerOf(token));
    },
    demand,
    has,
    demandKey: (key, { caller }) => {
      if (caller?.mayUse(key)) return;
      throw rejection('key_not_allowed', 'KEY_NOT_ALLOWED', {});
    },
    mayUse: (key, { caller }) => caller?.mayUse(key) ?? false,
    mayUseAll: ({ caller }) => caller?.mayUseAll ?? false,
    withPlace: ({ caller }, request, check) => {
      const place = caller && places.take(caller, request);
      return place ? inPlace(place, request, check) : withoutPlace(request, check);
    },
  };
}

async function withoutPlace(
  request: CheckRequest,
  check: (request: CheckRequest) => Promise<Decision>,
): Promise<Decision> {
  try {
    return await check({ ...request, noPlace: true });
  } catch (error) {
    const wouldWait = error instanceof UnavailableError && error.reason === 'too_many_waiters';
    throw wouldWait ? serviceError('TOO_MANY_WAITERS_OF_CALLER', {}) : error;
  }
}

/** The token in `Authorization: Bearer <token>`; the scheme in any case, RFC 9110, section 11.1. */
function tokenOf({ headers }: RequestContext): string | undefined {
  return /^bearer +(\S.*)$/i.exec(headers.authorization ?? '')?.[1];
}
