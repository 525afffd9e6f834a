import type { RequestHandler } from 'express';

import type { Limiter, RequestStatus } from '../../limiter/limiter.js';
import { parseKey } from '../../service/keys.js';
import { serviceError } from '../../service/service-error.js';
import { rejectParameters } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

const NOT_CACHED = ['Cache-Control', 'no-store'];

/** `GET /rate/{key}/{requestId}` */
export function requestStatus(
  limiter: Pick<Limiter, 'statusOf'>,
): RequestHandler<{ key: string; requestId: string }> {
  return async ({ params: { key, requestId }, query }, response) => {
    rejectParameters(query);
    const status = await limiter.statusOf(parseKey(key), requestId.toLowerCase());
    if (!status) throw serviceError('REQUEST_NOT_FOUND', {});
    sendJson(response, 200, bodyOf(status), NOT_CACHED);
  };
}

function bodyOf(status: RequestStatus): object {
  if (status.status === 'approved') return status;
  const { position, waitMillis } = status;
  return { status: 'waiting', position, waitMillis: Math.ceil(waitMillis) };
}
