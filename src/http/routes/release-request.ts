import type { RequestHandler } from 'express';

import { parseKey } from '../intake/parameters.js';
import { httpError } from '../replies/http-error.js';
import { sendJson } from '../replies/reply.js';
import type { Release } from './release.js';

/** `DELETE /rate/{key}/{requestId}` */
export function releaseRequest(
  release: Release,
): RequestHandler<{ key: string; requestId: string }> {
  return async (request, response) => {
    const { requestId } = request.params;
    const key = parseKey(request.params.key);
    if (!(await release(key, requestId, response))) {
      throw httpError('REQUEST_NOT_FOUND', {});
    }
    sendJson(response, 200, { request_id: requestId });
  };
}
