import type { IncomingHttpHeaders } from 'node:http';

import { serviceError } from '../../service/service-error.js';

/** @throws ServiceError ORIGIN_NOT_ALLOWED */
export type RejectForeignPages = (headers: IncomingHttpHeaders) => void;

/**
 * Rejects the requests that a browser sends for a page of another origin, such as for an image with the address of a
 * check. Browsers name the relation of the origins in `Sec-Fetch-Site`. Over HTTP they do so for localhost only, and
 * name the page's origin in the `Origin` header of some requests. Other clients send neither header.
 * @param allowed origins whose pages may send requests
 */
export function foreignPageCheck(allowed: readonly string[]): RejectForeignPages {
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
