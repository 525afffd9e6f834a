import type { Request, RequestHandler, Response } from 'express';

import { TooManyWaitersError } from '../../limiter/errors.js';
import { type HttpError, httpError } from '../replies/http-error.js';
import { keyOf } from '../replies/key-of.js';
import type { Access, Scope } from './access.js';
import type { CallerPlaces } from './caller-places.js';
import type { RefusalReason, Refusals } from './refusals.js';
import type { Caller, Tokens } from './tokens.js';

/** @returns undefined for an unknown token */
type OwnerOf = (token: string) => Caller | undefined;

/**
 * Access for requests with a token of the right scope, for the right key: RFC 6750.
 * @param tokens read anew for each request
 */
export function bearerAccess(
  tokens: { readonly current: Tokens },
  refusals: Pick<Refusals, 'note'>,
  places: Pick<CallerPlaces, 'take' | 'giveBack'>,
): Access {
  const refusal = (
    reason: RefusalReason,
    error: HttpError,
    response: Response,
    ...challenge: string[]
  ): HttpError => {
    refusals.note(reason);
    response.setHeader('WWW-Authenticate', ['Bearer realm="sluice"', ...challenge].join(', '));
    return error;
  };

  const authenticate = (request: Request, response: Response, ownerOf: OwnerOf): Caller => {
    const token = tokenOf(request);
    if (token === undefined) {
      throw refusal('token_required', httpError('TOKEN_REQUIRED', {}), response);
    }
    const caller = ownerOf(token);
    if (caller) return caller;
    const challenge = 'error="invalid_token"';
    throw refusal('token_unknown', httpError('TOKEN_UNKNOWN', {}), response, challenge);
  };

  const demand = (scope: Scope, response: Response): void => {
    if (response.locals.rights?.scopes.includes(scope)) return;
    const challenge = ['error="insufficient_scope"', `scope="${scope}"`];
    throw refusal('scope_missing', httpError('SCOPE_MISSING', { scope }), response, ...challenge);
  };

  const demandKey = (request: Request, { mayUse }: Caller): void => {
    // A guard for several paths knows no parameter.
    const key = (request.params.key as string | undefined) ?? keyOf(request);
    if (key === undefined || mayUse(key)) return;
    refusals.note('key_not_allowed');
    throw httpError('KEY_NOT_ALLOWED', {});
  };

  const guard =
    (scope: Scope, handler: RequestHandler, ownerOf: OwnerOf): RequestHandler =>
    (request, response, next) => {
      const caller = authenticate(request, response, ownerOf);
      response.locals.caller = caller.name;
      response.locals.rights = caller;
      demand(scope, response);
      demandKey(request, caller);
      return handler(request, response, next);
    };

  return {
    guard: (scope, handler) => guard(scope, handler, (token) => tokens.current.callerOf(token)),
    guardMetrics: (handler) => guard('debug', handler, (token) => tokens.current.readerOf(token)),
    demand,
    mayUse: (key, { locals }) => locals.rights?.mayUse(key) ?? false,
    withPlace: async ({ locals: { rights } }, work) => {
      if (!rights || !places.take(rights)) return withoutPlace(work);
      try {
        return await work(false);
      } finally {
        places.giveBack(rights);
      }
    },
  };
}

async function withoutPlace<T>(work: (noPlace: boolean) => Promise<T>): Promise<T> {
  try {
    return await work(true);
  } catch (error) {
    if (error instanceof TooManyWaitersError) throw httpError('TOO_MANY_WAITERS_OF_CALLER', {});
    throw error;
  }
}

/** The token in `Authorization: Bearer <token>`; the scheme in any case, RFC 9110, section 11.1. */
function tokenOf(request: Request): string | undefined {
  return /^bearer +(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1];
}
