import type { RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../config.js';
import { correlationIdOf } from './correlation.js';

type LoggedStatuses = Pick<Settings, 'LOG_2XX' | 'LOG_4XX' | 'LOG_5XX'>;

/**
 * One line for each answer of a class that is to be logged, with the request's correlation id.
 *
 * Written here and not left to pino-http, which makes two child loggers for every request, logged or
 * not: without them there is time for half as many decisions again.
 */
export function requestLog(logger: Logger, statuses: LoggedStatuses): RequestHandler {
  const isLogged = (status: number): boolean => {
    if (status >= 500) return statuses.LOG_5XX;
    return status >= 400 ? statuses.LOG_4XX : statuses.LOG_2XX;
  };

  // One function for all requests, which finds its request by `this`: no closure has to be made.
  function onClose(this: Response): void {
    const { correlationId, fault, startedAt } = this.locals;
    // The client left. If it waited, that was logged when it happened.
    if (!fault && !this.writableEnded) return;
    const status = fault ? Math.max(500, this.statusCode) : this.statusCode;
    if (!isLogged(status)) return;
    const line = {
      correlationId,
      method: this.req.method,
      url: this.req.url,
      status: this.statusCode,
      responseTime: Math.round(performance.now() - startedAt),
    };
    if (status < 500) logger.info(line, 'request completed');
    // A passing fault needs no stack at every request; its cause is logged where it is noticed.
    else if (status === 503) logger.error({ ...line, reason: fault?.message }, 'request errored');
    else logger.error({ ...line, err: fault }, 'request errored');
  }

  function onError(this: Response, error: Error): void {
    logger.error({ correlationId: this.locals.correlationId, err: error }, 'response failed');
  }

  return (request, response, next) => {
    response.locals.correlationId = correlationIdOf(request);
    response.locals.startedAt = performance.now();
    response.on('close', onClose);
    // Without a listener, an answer to a client that has just left would end the process.
    response.on('error', onError);
    next();
  };
}
