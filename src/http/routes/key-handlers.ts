import type { RequestHandler, Response } from 'express';

import type { Limiter } from '../../limiter/limiter.js';
import type { AskedPause } from '../../service/deciding/pause-key.js';
import { parseKey } from '../../service/keys.js';
import type { Service } from '../../service/service.js';
import { serviceError } from '../../service/service-error.js';
import { parseKeyChange, rejectParameters } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

type HoldEnder = Pick<Limiter, 'endHold'>;

/** `PUT /rate/{key}`: pauses a key, or takes a report of what remains of one of its limits. */
export function changeKey({
  pause,
  reportRemaining,
}: Pick<Service, 'pause' | 'reportRemaining'>): RequestHandler<{ key: string }> {
  return async ({ params, query }, response) => {
    const key = parseKey(params.key);
    const change = parseKeyChange(query);
    if (change.pauseMillis !== undefined) {
      await answerPause(pause, key, change, response);
      return;
    }
    const { report } = change;
    const { remaining } = await reportRemaining(key, report, response.locals.context);
    sendJson(response, 200, { key, limit: report.limit, remaining });
  };
}

/** @throws ServiceError as `pause`, and what a limiter throws */
export async function answerPause(
  pause: Service['pause'],
  key: string,
  asked: AskedPause,
  response: Response,
): Promise<void> {
  const pauseMillis = await pause(key, asked, response.locals.context);
  sendJson(response, 200, { key, pauseMillis });
}

/** `DELETE /rate/{key}/holders/{handle}` */
export function endHold(limiter: HoldEnder): RequestHandler<{ key: string; handle: string }> {
  return ({ params: { key, handle }, query }, response) => {
    rejectParameters(query);
    return answerHoldEnd(limiter, key, handle, response);
  };
}

/** @throws ServiceError INVALID_KEY_LENGTH or HOLDER_NOT_FOUND, and what a limiter throws */
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
