import type { Request, RequestHandler, Response } from 'express';

import { HttpError } from '../replies/http-error.js';
import { keyOf } from '../replies/key-of.js';
import type { Access, Scope } from './access.js';
import type { Tokens } from './tokens.js';

/**
 * Those may do something who have a token for it: RFC 6750.
 * @param tokens asked anew for each request
 */
export function bearerAccess(tokens: { readonly current: Tokens }): Access {
  return {
    guard: (scope, handler): RequestHandler => {
      return (request, response, next) => {
        const token = tokenOf(request);
        if (token === undefined) throw refusal(response, 401, 'a bearer token is required');
        const caller = tokens.current.callerOf(token);
        if (!caller) throw refusal(response, 401, 'unknown token', 'error="invalid_token"');
        response.locals.caller = caller.name;
        if (!caller.scopes.includes(scope)) throw lacking(response, scope);
        return handler(request, response, next);
      };
    },
  };
}

/** What `Authorization: Bearer <token>` has; the scheme in any case, RFC 9110, section 11.1. */
function tokenOf(request: Request): string | undefined {
  return /^bearer +(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1];
}

function lacking(response: Response, scope: Scope): HttpError {
  const message = `the token lacks the scope ${scope}`;
  return refusal(response, 403, message, `error="insufficient_scope", scope="${scope}"`);
}

function refusal(
  response: Response,
  status: 401 | 403,
  message: string,
  ...reasons: string[]
): HttpError {
  response.setHeader('WWW-Authenticate', ['Bearer realm="sluice"', ...reasons].join(', '));
  return new HttpError(status, message, keyOf(response.req));
}
