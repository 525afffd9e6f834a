import type { IncomingHttpHeaders } from 'node:http';

import { serviceError } from '../../service/service-error.js';

/** @throws ServiceError ORIGIN_NOT_ALLOWED */
export type RefuseForeignPages = (headers: IncomingHttpHeaders) => void;

/**
 * Refuses what a browser sends for a page of another origin, such as an image whose address is that of a check. Browsers
 * say so in `Sec-Fetch-Site`, or where they don't (over HTTP, but for localhost) in `Origin`, which only some requests
 * have. Others than browsers send neither.
 * @param allowed origins whose pages may ask
 */
export function foreignPageRefusal(allowed: readonly string[]): RefuseForeignPages {
  const origins = new Set(allowed);
  return (headers) => {
    const { 'sec-fetch-site': site, origin } = headers;
    if (site === undefined && origin === undefined) return;
    if (isOwn(headers)) return;
    const asking = origin ?? originIn(headers.referer);
    if (asking === undefined || !origins.has(asking)) throw serviceError('ORIGIN_NOT_ALLOWED', {});
  };
}

/** `none` is what the user asks for, by the address bar or a bookmark. `same-site` is another port or name. */
function isOwn({ 'sec-fetch-site': site, origin, host }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  return host !== undefined && origin?.replace(/^https?:\/\//, '') === host.toLowerCase();
}

/** Requests for images and links have no `Origin`. */
function originIn(referer: string | undefined): string | undefined {
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : undefined;
}
