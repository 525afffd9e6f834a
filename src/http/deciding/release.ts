import type { Response } from 'express';

import type { Limiter, RequestTrace } from '../../limiter/limiter.js';

/** Releases an approval, for one release in a request and for many. @returns as `Limiter.release` */
export type Release = (
  key: string,
  requestId: string,
  response: Response,
  trace?: RequestTrace,
) => Promise<boolean>;

/** Releases by the limiter. */
export function releaseBy(limiter: Pick<Limiter, 'release'>): Release {
  return (key, requestId, _response, trace) => limiter.release(key, requestId, { trace });
}
