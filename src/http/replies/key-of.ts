import type { Request } from 'express';

/**
 * The limiter key in the path of a request. Express forgets the parameters of a route on the way to the
 * error handler.
 * @returns the key decoded, or as it stands in the path if its encoding is wrong; undefined without one
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
