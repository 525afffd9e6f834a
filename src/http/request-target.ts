import type { IncomingMessage } from 'node:http';

const SCHEME_AND_AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;

/**
 * Leaves of a target in absolute form, as proxies send it, the path and the query. Node's parser of URLs,
 * which the router uses, fails for some authorities, and the request would never reach the service.
 * https://www.rfc-editor.org/rfc/rfc9112#name-absolute-form
 */
export function toOriginForm(request: IncomingMessage): void {
  const target = request.url ?? '/';
  if (target.startsWith('/')) return;
  const path = target.replace(SCHEME_AND_AUTHORITY, '').replace(/#.*$/s, '');
  request.url = path.startsWith('/') || path === '*' ? path : `/${path}`;
}
