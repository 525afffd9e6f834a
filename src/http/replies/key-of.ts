import type { Request } from 'express';

/**
 * The limiter key in the path of a request, or in the query of a request of the dashboard. Express drops the parameters
 * of a route before the error handler runs.
 * @returns the key decoded, or as it stands in the path if its encoding is invalid; undefined if there is none
 */
export function keyOf(request: Request): string | undefined {
  const [, resource, key] = (request.baseUrl + request.path).split('/');
  if (resource === 'ui') return keyInQuery(request);
  if (!key || (resource !== 'rate' && resource !== 'debug')) return undefined;
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

function keyInQuery({ query }: Request): string | undefined {
  return typeof query.key === 'string' && query.key !== '' ? query.key : undefined;
}
