import type { RequestHandler } from 'express';

import type { Amend } from '../../service/deciding/traced-decisions.js';
import { parseKey } from '../../service/keys.js';
import { serviceError } from '../../service/service-error.js';
import { parseAmendment } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

/** `PUT /rate/{key}/{requestId}` */
export function amendRequest(amend: Amend): RequestHandler<{ key: string; requestId: string }> {
  return async ({ params, query }, response) => {
    const { key } = params;
    const requestId = params.requestId.toLowerCase();
    const amendment = parseAmendment(query);
    const amended = await amend(parseKey(key), requestId, amendment, response.locals.context);
    if (!amended) throw serviceError('REQUEST_NOT_FOUND', {});
    const { holdMillis } = amended;
    sendJson(response, 200, { request_id: requestId, hits: amendment.hits, holdMillis });
  };
}
