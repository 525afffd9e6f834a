import type { RequestHandler, Response } from 'express';

import type { Release } from '../../service/deciding/traced-decisions.js';
import { parseKey } from '../../service/keys.js';
import { serviceError } from '../../service/service-error.js';
import { rejectParameters } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

/** `DELETE /rate/{key}/{requestId}` */
export function releaseRequest(
  release: Release,
): RequestHandler<{ key: string; requestId: string }> {
  return ({ params: { key, requestId }, query }, response) => {
    rejectParameters(query);
    return answerRelease(release, key, requestId.toLowerCase(), response);
  };
}

/**
 * Releases an approval, and answers its release.
 * @throws ServiceError INVALID_KEY_LENGTH or REQUEST_NOT_FOUND, and what a limiter throws
 */
export async function answerRelease(
  release: Release,
  key: string,
  requestId: string,
  response: Response,
): Promise<void> {
  if (!(await release(parseKey(key), requestId, response.locals.context))) {
    throw serviceError('REQUEST_NOT_FOUND', {});
  }
  sendJson(response, 200, { request_id: requestId });
}
