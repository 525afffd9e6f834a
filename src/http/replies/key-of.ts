import type { Request } from 'express';

/**
 * The limiter key in the path of a request, where there is one: decoded where that can be done.
 * Express forgets the parameters of a route on the way to the error handler.
 */
export function keyOf(request: Request): string | undefined {
  const [, resource, key] = (request.baseUrl + request.path).split('/');
  if (!key || (resource !== 'rate' && resource !== 'debug')) return undefined;
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
