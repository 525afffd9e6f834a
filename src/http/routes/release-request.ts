import type { RequestHandler, Response } from 'express';

import { parseKey } from '../intake/parameters.js';
import { httpError } from '../replies/http-error.js';
import { sendJson } from '../replies/reply.js';
import type { Release } from '../deciding/release.js';

/** `DELETE /rate/{key}/{requestId}` */
export function releaseRequest(
  release: Release,
): RequestHandler<{ key: string; requestId: string }> {
  return ({ params: { key, requestId } }, response) =>
    answerRelease(release, key, requestId, response);
}

/**
 * Releases an approval, and answers its release.
 * @throws HttpError INVALID_KEY_LENGTH or REQUEST_NOT_FOUND, and what a limiter throws
 */
export async function answerRelease(
  release: Release,
  key: string,
  requestId: string,
  response: Response,
): Promise<void> {
  if (!(await release(parseKey(key), requestId, response))) {
    throw httpError('REQUEST_NOT_FOUND', {});
  }
  sendJson(response, 200, { request_id: requestId });
}
