import express, { type Express, type Request, type RequestHandler } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../config.js';
import type { Limiter } from '../limiter/limiter.js';
import { debugAll, debugOne } from './debug-handlers.js';
import { errorHandler, keyOf } from './error-handler.js';
import { HttpError } from './http-error.js';
import { checkRate, releaseRequest } from './rate-handlers.js';
import { send } from './reply.js';
import { requestLog } from './request-log.js';

/** The service's HTTP surface: every path, its methods, and what answers them. */
export function createHttpApp(limiter: Limiter, settings: Settings, logger: Logger): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // A key is what stands in the path, to the letter: `/rate/a/` asks for no key, not for `a`.
  app.enable('strict routing');
  app.enable('case sensitive routing');
  app.use(requestLog(logger, settings));

  const check = checkRate(limiter, settings, logger) as RequestHandler;
  route(app, '/rate/:key', { GET: check, POST: check });
  route(app, '/rate/:key/:requestId', { DELETE: releaseRequest(limiter) as RequestHandler });
  routeReads(app, '/debug', debugAll(limiter));
  routeReads(app, '/debug/:key', debugOne(limiter) as RequestHandler);
  routeReads(app, '/healthz', (_request, response) => {
    send(response, 200, 'text/plain; charset=utf-8', 'OK');
  });

  app.use((request: Request) => {
    throw new HttpError(404, `no such path: ${request.path}`);
  });
  app.use(errorHandler);
  return app;
}

function routeReads(app: Express, path: string, handler: RequestHandler): void {
  route(app, path, { GET: handler, HEAD: handler });
}

/**
 * Answers the methods given, and every other with a 405. Among these is a HEAD that Express would
 * run as a GET: on `/rate` it would consume.
 */
function route(
  app: Express,
  path: string,
  handlers: Readonly<Record<string, RequestHandler>>,
): void {
  const allow = Object.keys(handlers).join(', ');
  app.all(path, (request, response, next) => {
    const handler = handlers[request.method];
    if (handler) return handler(request, response, next);
    response.setHeader('Allow', allow);
    throw new HttpError(405, `${request.method} is not allowed here`, keyOf(request));
  });
}
