import type { RequestHandler } from 'express';

import type { Limiter } from '../../limiter/limiter.js';
import { parseKey } from '../intake/parameters.js';
import { httpError } from '../replies/http-error.js';
import { sendJson } from '../replies/reply.js';

/** `DELETE /rate/{key}/{requestId}` */
export function releaseRequest(
  limiter: Limiter,
): RequestHandler<{ key: string; requestId: string }> {
  return async (request, response) => {
    const { requestId } = request.params;
    const key = parseKey(request.params.key);
    if (!(await limiter.release(key, requestId))) {
      throw httpError('REQUEST_NOT_FOUND', {});
    }
    sendJson(response, 200, { request_id: requestId });
  };
}
