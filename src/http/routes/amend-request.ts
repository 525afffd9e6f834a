import type { RequestHandler } from 'express';

import type { Amend } from '../../service/deciding/traced-decisions.js';
import { parseKey } from '../../service/keys.js';
import { serviceError } from '../../service/service-error.js';
import { parseAmendment } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

/** `PUT /rate/{key}/{requestId}` */
export function amendRequest(amend: Amend): RequestHandler<{ key: string; requestId: string }> {
  return async ({ params: { key, requestId }, query }, response) => {
    const hits = parseAmendment(query);
    if (!(await amend(parseKey(key), requestId, hits, response.locals.context))) {
      throw serviceError('REQUEST_NOT_FOUND', {});
    }
    sendJson(response, 200, { request_id: requestId, hits });
  };
}
