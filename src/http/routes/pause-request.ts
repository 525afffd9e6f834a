import type { RequestHandler } from 'express';

import type { Pause } from '../../service/deciding/pause-key.js';
import { parseKey } from '../../service/keys.js';
import { parsePause } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

/** `PUT /rate/{key}` */
export function pauseRequest(pause: Pause): RequestHandler<{ key: string }> {
  return async ({ params, query }, response) => {
    const key = parseKey(params.key);
    const pauseMillis = parsePause(query);
    await pause(key, pauseMillis, response.locals.context);
    sendJson(response, 200, { key, pauseMillis });
  };
}
