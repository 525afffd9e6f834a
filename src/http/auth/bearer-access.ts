import type { Request, RequestHandler, Response } from 'express';

import { httpError } from '../replies/http-error.js';
import type { Access, Scope } from './access.js';
import type { Tokens } from './tokens.js';

/**
 * Access for requests with a token of the right scope: RFC 6750.
 * @param tokens read anew for each request
 */
export function bearerAccess(tokens: { readonly current: Tokens }): Access {
  return {
    guard: (scope, handler): RequestHandler => {
      return (request, response, next) => {
        authorize(request, response, tokens.current, scope);
        return handler(request, response, next);
      };
    },
  };
}

/** @throws HttpError TOKEN_REQUIRED, TOKEN_UNKNOWN or SCOPE_MISSING */
function authorize(request: Request, response: Response, tokens: Tokens, scope: Scope): void {
  const token = tokenOf(request);
  if (token === undefined) {
    challenge(response);
    throw httpError('TOKEN_REQUIRED', {});
  }
  const caller = tokens.callerOf(token);
  if (!caller) {
    challenge(response, 'error="invalid_token"');
    throw httpError('TOKEN_UNKNOWN', {});
  }
  response.locals.caller = caller.name;
  if (!caller.scopes.includes(scope)) {
    challenge(response, 'error="insufficient_scope"', `scope="${scope}"`);
    throw httpError('SCOPE_MISSING', { scope });
  }
}

/** The token in `Authorization: Bearer <token>`; the scheme in any case, RFC 9110, section 11.1. */
function tokenOf(request: Request): string | undefined {
  return /^bearer +(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1];
}

function challenge(response: Response, ...reasons: string[]): void {
  response.setHeader('WWW-Authenticate', ['Bearer realm="sluice"', ...reasons].join(', '));
}
