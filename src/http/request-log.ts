import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Logger } from 'pino';
import { type HttpLogger, pinoHttp } from 'pino-http';

import type { Settings } from '../config.js';
import { correlate } from './correlation.js';

type LoggedStatuses = Pick<Settings, 'LOG_2XX' | 'LOG_4XX' | 'LOG_5XX'>;

/** One line for each answer of a class that is to be logged, with the request's correlation id. */
export function requestLog(logger: Logger, statuses: LoggedStatuses): HttpLogger {
  const level = (response: ServerResponse): 'info' | 'error' | 'silent' => {
    const status = response.err ? Math.max(500, response.statusCode) : response.statusCode;
    // The client left. If it waited, that was logged when it happened.
    if (!response.err && !response.writableEnded) return 'silent';
    if (status >= 500) return statuses.LOG_5XX ? 'error' : 'silent';
    if (status >= 400) return statuses.LOG_4XX ? 'info' : 'silent';
    return statuses.LOG_2XX ? 'info' : 'silent';
  };
  return pinoHttp({
    logger,
    genReqId: correlate,
    customAttributeKeys: { reqId: 'correlationId' },
    quietReqLogger: true,
    quietResLogger: true,
    customLogLevel: (_request, response) => level(response),
    customSuccessObject: describe,
    customErrorObject: (request, response, error: Error, logged: { responseTime: number }) => ({
      ...describe(request, response, logged),
      // A passing fault needs no stack at every request; its cause is logged where it is noticed.
      ...(response.statusCode === 503 ? { reason: error.message } : { err: error }),
    }),
  });
}

function describe(
  request: IncomingMessage,
  response: ServerResponse,
  logged: { responseTime: number },
): object {
  return {
    method: request.method,
    url: request.url,
    status: response.statusCode,
    responseTime: logged.responseTime,
  };
}
