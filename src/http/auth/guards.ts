import type { IncomingHttpHeaders } from 'node:http';

import type { RequestHandler } from 'express';

import type { Settings } from '../../config/settings.js';
import type { Access, EntryScope } from '../../service/callers/access.js';
import { serviceError } from '../../service/errors.js';
import { keyOf } from '../replies/request-log.js';

/** Passes requests with a scope on to `handler`, and rejects all others. */
export type Guard = (scope: EntryScope, handler: RequestHandler) => RequestHandler;

/**
 * The guard of the service. Without tokens, requests from pages of other origins are rejected: the browser that shows
 * such a page may reach the service. Metrics are served to any page: reading them changes nothing, and a page of
 * another origin can't read the answer.
 */
export function guardOf(
  access: Access,
  { AUTH_TOKENS_FILE, ALLOWED_ORIGINS }: Pick<Settings, 'AUTH_TOKENS_FILE' | 'ALLOWED_ORIGINS'>,
): Guard {
  if (AUTH_TOKENS_FILE === undefined) {
    const rejectForeignPages = foreignPageCheck(ALLOWED_ORIGINS ?? []);
    return (scope, handler) => {
      if (scope === 'metrics') return handler;
      return (request, response, next) => {
        rejectForeignPages(request.headers);
        return handler(request, response, next);
      };
    };
  }
  return (scope, handler) => (request, response, next) => {
    const { context } = response.locals;
    access.enter(scope, context);
    // A guard for several paths has no path parameter.
    const key = (request.params.key as string | undefined) ?? keyOf(request);
    if (key !== undefined) access.demandKey(key, context);
    return handler(request, response, next);
  };
}

/**
 * Rejects the requests that a browser sends for a page of another origin, such as for an image with the address of a
 * check. Browsers name the relation of the origins in `Sec-Fetch-Site`. Over HTTP they do so for localhost only, and
 * name the page's origin in the `Origin` header of some requests. Other clients send neither header.
 * @param allowed origins whose pages may send requests
 */
function foreignPageCheck(allowed: readonly string[]): (headers: IncomingHttpHeaders) => void {
  const origins = new Set(allowed);
  return (headers) => {
    const { 'sec-fetch-site': site, origin } = headers;
    if (site === undefined && origin === undefined) return;
    if (isOwn(headers)) return;
    const asking = origin ?? originIn(headers.referer);
    if (asking === undefined || !origins.has(asking)) throw serviceError('ORIGIN_NOT_ALLOWED', {});
  };
}

/** `none`: the user asked, by the address bar or a bookmark. `same-site`: the page has another port or name. */
function isOwn({ 'sec-fetch-site': site, origin, host }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  return host !== undefined && origin?.replace(/^https?:\/\//, '') === host.toLowerCase();
}

/** Requests for images and links have no `Origin`. */
function originIn(referer: string | undefined): string | undefined {
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : undefined;
}
