import type { RequestHandler } from 'express';

import type { Metrics } from '../../metrics/metrics.js';
import type { Readiness } from '../../readiness/readiness.js';
import { ERRORS, messageOf } from '../../service/errors.js';
import { httpStatusOf } from '../replies/error-statuses.js';
import { BROWSER_HEADERS } from '../replies/headers.js';
import { PLAIN_TEXT, send } from '../replies/reply.js';

/** `GET /healthz`. The answer says only that the process lives. */
export const healthz: RequestHandler = (_request, response) => {
  send(response, 200, PLAIN_TEXT, 'OK', BROWSER_HEADERS);
};

/**
 * `GET /readyz`. The answer says whether requests should come here, or why not, one reason on each line. An OK is
 * followed by warnings, if there are any.
 */
export function readyz(readiness: Readiness): RequestHandler {
  return async (_request, response) => {
    const { reasons, remarks } = await readiness.assess();
    if (reasons.length === 0) {
      send(response, 200, PLAIN_TEXT, ['OK', ...remarks].join('\n'), BROWSER_HEADERS);
      return;
    }
    const { retryAfter } = ERRORS.NOT_READY;
    const text = messageOf('NOT_READY', { reasons: reasons.join('\n') });
    response.locals.errorCode = 'NOT_READY';
    send(response, httpStatusOf('NOT_READY'), PLAIN_TEXT, text, [
      ...BROWSER_HEADERS,
      'Retry-After',
      retryAfter,
    ]);
  };
}

/** `GET /metrics`, for Prometheus. */
export function metricsText(metrics: Metrics): RequestHandler {
  return async (_request, response) => {
    send(response, 200, metrics.contentType, await metrics.text(), BROWSER_HEADERS);
  };
}
