import type { RequestHandler, Response } from 'express';

import type { Limiter } from '../../limiter/limiter.js';
import { parseKey } from '../../service/keys.js';
import { serviceError } from '../../service/service-error.js';
import { rejectParameters } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

type HoldEnder = Pick<Limiter, 'endHold'>;

/** `DELETE /rate/{key}/holders/{handle}` */
export function endHold(limiter: HoldEnder): RequestHandler<{ key: string; handle: string }> {
  return ({ params: { key, handle }, query }, response) => {
    rejectParameters(query);
    return answerHoldEnd(limiter, key, handle, response);
  };
}

/**
 * Ends a hold, and answers its end.
 * @throws ServiceError INVALID_KEY_LENGTH or HOLDER_NOT_FOUND, and what a limiter throws
 */
export async function answerHoldEnd(
  limiter: HoldEnder,
  key: string,
  handle: string,
  response: Response,
): Promise<void> {
  if (!(await limiter.endHold(parseKey(key), handle.toLowerCase()))) {
    throw serviceError('HOLDER_NOT_FOUND', {});
  }
  sendJson(response, 200, { key, handle });
}
