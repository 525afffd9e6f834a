import type { RequestHandler } from 'express';

import { UnavailableError } from '../../limiter/errors.js';
import type { Asker } from '../asker.js';
import type { ErrorCode, ErrorValues } from '../replies/errors.js';
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
  const refusal = <Code extends ErrorCode>(
    reason: RefusalReason,
    code: Code,
    values: ErrorValues<Code>,
    ...challenge: string[]
  ): HttpError => {
    refusals.note(reason);
    const header = ['Bearer realm="sluice"', ...challenge].join(', ');
    return httpError(code, values, ['WWW-Authenticate', header]);
  };

  const authenticate = (from: Asker, ownerOf: OwnerOf): Caller => {
    const token = tokenOf(from);
    if (token === undefined) throw refusal('token_required', 'TOKEN_REQUIRED', {});
    const caller = ownerOf(token);
    if (caller) return caller;
    throw refusal('token_unknown', 'TOKEN_UNKNOWN', {}, 'error="invalid_token"');
  };

  const demand = (scope: Scope, { locals: { rights } }: Asker): void => {
    if (rights?.scopes.includes(scope)) return;
    const challenge = ['error="insufficient_scope"', `scope="${scope}"`];
    throw refusal('scope_missing', 'SCOPE_MISSING', { scope }, ...challenge);
  };

  const demandKey = (key: string, { locals: { rights } }: Asker): void => {
    if (rights?.mayUse(key)) return;
    refusals.note('key_not_allowed');
    throw httpError('KEY_NOT_ALLOWED', {});
  };

  const enter = (scope: Scope, from: Asker, ownerOf: OwnerOf): void => {
    const caller = authenticate(from, ownerOf);
    from.locals.caller = caller.name;
    from.locals.rights = caller;
    demand(scope, from);
  };

  const guard =
    (scope: Scope, handler: RequestHandler, ownerOf: OwnerOf): RequestHandler =>
    (request, response, next) => {
      enter(scope, response, ownerOf);
      // A guard for several paths knows no parameter.
      const key = (request.params.key as string | undefined) ?? keyOf(request);
      if (key !== undefined) demandKey(key, response);
      return handler(request, response, next);
    };

  const callerOf: OwnerOf = (token) => tokens.current.callerOf(token);
  return {
    enter: (scope, from) => {
      enter(scope, from, callerOf);
    },
    guard: (scope, handler) => guard(scope, handler, callerOf),
    guardMetrics: (handler) => guard('debug', handler, (token) => tokens.current.readerOf(token)),
    demand,
    demandKey,
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
    if (error instanceof UnavailableError && error.reason === 'too_many_waiters')
      throw httpError('TOO_MANY_WAITERS_OF_CALLER', {});
    throw error;
  }
}

/** The token in `Authorization: Bearer <token>`; the scheme in any case, RFC 9110, section 11.1. */
function tokenOf({ req }: Asker): string | undefined {
  return /^bearer +(\S.*)$/i.exec(req.headers.authorization ?? '')?.[1];
}
