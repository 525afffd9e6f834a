import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Express, Request, RequestHandler, Response } from 'express';

import { errorHandler } from '../replies/error-body.js';

/** A key that stands for itself, and no parameters: `/rate/report`. */
const WITHOUT_PARAMETERS = /^\/rate\/([\w.~:-]+)$/;
const METHODS: readonly string[] = ['GET', 'POST'];

/**
 * Answers checks without parameters, which are nearly all requests, without the router of `app`: parsing their URLs and
 * going through the layers takes a tenth of the time of a check. The router answers these checks alike
 * (test/service/http/check.test.ts).
 * @param takeIn throws if a request is rejected
 */
export function unroutedChecks(
  app: Express,
  takeIn: (request: Request, response: Response) => void,
  check: RequestHandler,
) {
  /** Answers a check without parameters. @returns false for any other request, which is left alone */
  return (incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    const key = WITHOUT_PARAMETERS.exec(incoming.url ?? '')?.[1];
    if (key === undefined || !METHODS.includes(incoming.method ?? '')) return false;
    const [request, response] = prepare(app, incoming, outgoing);
    request.params = { key };
    const onError = (error: unknown): void => {
      try {
        errorHandler(error, request, response, onError);
      } catch (fault) {
        response.destroy(fault as Error);
      }
    };
    try {
      takeIn(request, response);
      void check(request, response, onError);
    } catch (error) {
      onError(error);
    }
    return true;
  };
}

/** Turns Node's messages into Express's. */
function prepare(
  app: Express,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): [Request, Response] {
  const request = incoming as Request;
  const response = outgoing as Response;
  Object.setPrototypeOf(request, app.request);
  Object.setPrototypeOf(response, app.response);
  request.res = response;
  response.req = request;
  response.locals = Object.create(null) as Response['locals'];
  request.originalUrl = request.url;
  request.baseUrl = '';
  return [request, response];
}
