import type { Request, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import type { UnreadableRequest } from './client-errors.js';
import { correlationIdOf } from './correlation.js';

type LoggedStatuses = Pick<Settings, 'LOG_2XX' | 'LOG_4XX' | 'LOG_5XX'>;

/**
 * One line for each answer of a class that is to be logged, with the request's correlation id.
 *
 * Written here and not left to pino-http, which makes two child loggers for every request, logged or
 * not: without them there is time for half as many decisions again.
 */
export function requestLog(
  logger: Logger,
  statuses: LoggedStatuses,
): (request: Request, response: Response) => void {
  // One function for all requests, which finds its request by `this`: no closure has to be made.
  function onClose(this: Response): void {
    const { correlationId, caller, fault, startedAt } = this.locals;
    // The client left. If it waited, that was logged when it happened.
    if (!fault && !this.writableEnded) return;
    const status = fault ? Math.max(500, this.statusCode) : this.statusCode;
    if (!isLogged(status, statuses)) return;
    const line = {
      correlationId,
      caller,
      method: this.req.method,
      url: this.req.url,
      status: this.statusCode,
      responseTime: Math.round(performance.now() - startedAt),
    };
    if (status < 500) logger.info(line, 'request completed');
    // While the store is away these are all requests; that it went is logged where it is noticed.
    else if (status === 503) logger.debug({ ...line, reason: fault?.message }, 'request errored');
    else logger.error({ ...line, err: fault }, 'request errored');
  }

  function onError(this: Response, error: Error): void {
    logger.error({ correlationId: this.locals.correlationId, err: error }, 'response failed');
  }

  return (request, response) => {
    response.locals.correlationId = correlationIdOf(request);
    response.locals.startedAt = performance.now();
    response.on('close', onClose);
    // Without a listener, an answer to a client that has just left would end the process.
    response.on('error', onError);
  };
}

/** One line for each answer to what could not be read as a request, where such are to be logged. */
export function logUnreadable(
  logger: Logger,
  statuses: LoggedStatuses,
): (request: UnreadableRequest) => void {
  return (request) => {
    if (isLogged(request.status, statuses)) logger.info(request, 'unreadable request answered');
  };
}

function isLogged(status: number, statuses: LoggedStatuses): boolean {
  if (status >= 500) return statuses.LOG_5XX;
  return status >= 400 ? statuses.LOG_4XX : statuses.LOG_2XX;
}
