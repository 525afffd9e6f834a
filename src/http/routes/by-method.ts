import type { Express, RequestHandler } from 'express';

import { type ServiceError, serviceError } from '../../service/errors.js';

type Handlers = Readonly<Record<string, RequestHandler>>;

export function routeReads(app: Express, path: string, handler: RequestHandler): void {
  route(app, path, { GET: handler, HEAD: handler });
}

/** Routes the given methods, as `byMethod` does. */
export function route(app: Express, path: string, handlers: Handlers): void {
  app.all(path, byMethod(handlers, notAllowed));
}

/**
 * Handles the given methods, and answers every other method with a 405. Express would run HEAD as GET, which consumes on
 * `/rate`.
 * @param handlers by method
 * @param refusalOf the error for another method
 */
export function byMethod(
  handlers: Handlers,
  refusalOf: (method: string) => ServiceError,
): RequestHandler {
  const allow = Object.keys(handlers).join(', ');
  return (request, response, next) => {
    const handler = handlers[request.method];
    if (handler) return handler(request, response, next);
    response.setHeader('Allow', allow);
    throw refusalOf(request.method);
  };
}

export function notAllowed(method: string): ServiceError {
  return serviceError('METHOD_NOT_ALLOWED', { method });
}
