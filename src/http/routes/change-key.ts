import type { RequestHandler } from 'express';

import { parseKey } from '../../service/keys.js';
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
      const { pauseMillis } = change;
      await pause(key, pauseMillis, context);
      sendJson(response, 200, { key, pauseMillis });
      return;
    }
    const { remaining } = await reportRemaining(key, change.report, context);
    sendJson(response, 200, { key, limit: change.report.limit, remaining });
  };
}
