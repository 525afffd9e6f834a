import type { RequestHandler, Response } from 'express';

import { parseKey } from '../../service/keys.js';
import type { AskedPause } from '../../service/deciding/pause-key.js';
import type { Service } from '../../service/service.js';
import { parseKeyChange } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

/** `PUT /rate/{key}`: pauses a key, or takes a report of what remains of one of its limits. */
export function changeKey({
  pause,
  reportRemaining,
}: Pick<Service, 'pause' | 'reportRemaining'>): RequestHandler<{ key: string }> {
  return async ({ params, query }, response) => {
    const key = parseKey(params.key);
    const change = parseKeyChange(query);
    const { context } = response.locals;
    if (change.pauseMillis !== undefined) {
      await answerPause(pause, key, change, response);
      return;
    }
    const { remaining } = await reportRemaining(key, change.report, context);
    sendJson(response, 200, { key, limit: change.report.limit, remaining });
  };
}

/**
 * Pauses a key, and answers the pause.
 * @throws ServiceError as `pause`, and what a limiter throws
 */
export async function answerPause(
  pause: Service['pause'],
  key: string,
  asked: AskedPause,
  response: Response,
): Promise<void> {
  const pauseMillis = await pause(key, asked, response.locals.context);
  sendJson(response, 200, { key, pauseMillis });
}
