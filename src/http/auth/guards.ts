import type { Request, RequestHandler } from 'express';

import type { Settings } from '../../config/settings.js';
import type { Access } from '../../service/callers/access.js';
import type { Scope } from '../../service/callers/caller.js';
import type { RequestContext } from '../../service/request-context.js';
import { keyOf } from '../replies/key-of.js';
import { foreignPageCheck } from './foreign-pages.js';

/** Lets requests pass to their handlers, or rejects them. */
export interface Guards {
  /** @returns a handler that passes requests with `scope` on to `handler`, and rejects all others */
  guard(scope: Scope, handler: RequestHandler): RequestHandler;
  /** As {@link guard} for the scope `debug`, also while the tokens are gone. */
  guardMetrics(handler: RequestHandler): RequestHandler;
}

/**
 * The guards of the service. Without tokens, requests from pages of other origins are rejected: the browser that shows
 * such a page may reach the service. Metrics are served to any page: reading them changes nothing, and a page of
 * another origin can't read the answer.
 */
export function guardsOf(
  access: Access,
  { AUTH_TOKENS_FILE, ALLOWED_ORIGINS }: Pick<Settings, 'AUTH_TOKENS_FILE' | 'ALLOWED_ORIGINS'>,
): Guards {
  if (AUTH_TOKENS_FILE === undefined) {
    const rejectForeignPages = foreignPageCheck(ALLOWED_ORIGINS ?? []);
    return {
      guard: (_scope, handler) => (request, response, next) => {
        rejectForeignPages(request.headers);
        return handler(request, response, next);
      },
      guardMetrics: (handler) => handler,
    };
  }
  const guardBy =
    (enter: (context: RequestContext) => void, handler: RequestHandler): RequestHandler =>
    (request, response, next) => {
      const { context } = response.locals;
      enter(context);
      const key = keyIn(request);
      if (key !== undefined) access.demandKey(key, context);
      return handler(request, response, next);
    };
  return {
    guard: (scope, handler) =>
      guardBy((context) => {
        access.enter(scope, context);
      }, handler),
    guardMetrics: (handler) =>
      guardBy((context) => {
        access.enterMetrics(context);
      }, handler),
  };
}

/** A guard for several paths has no path parameter. */
function keyIn(request: Request): string | undefined {
  return (request.params.key as string | undefined) ?? keyOf(request);
}
