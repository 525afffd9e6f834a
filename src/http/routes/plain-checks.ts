import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express';

/** A key that stands for itself, and nothing else: `/rate/report`. */
const PLAIN_CHECK = /^\/rate\/([\w.~:-]+)$/;
const METHODS: readonly string[] = ['GET', 'POST'];

/** What is done with the requests of a route, as Express's router would do it. */
export interface PlainCheckSteps {
  /** Throws where a request is refused. */
  readonly takeIn: (request: Request, response: Response) => void;
  readonly check: RequestHandler;
  readonly fail: ErrorRequestHandler;
}

/**
 * Answers checks without parameters, which are nearly all requests, in front of the router of `app`: parsing their URLs
 * and going through the layers takes a tenth of the time of a check. Every other request goes to the router, which
 * answers these checks alike (test/http/plain-checks.test.ts).
 */
export function answerPlainChecks(app: Express, { takeIn, check, fail }: PlainCheckSteps): void {
  // By its name `app` hands each request to it.
  const routed = app as unknown as { handle: (...args: [Request, Response, unknown]) => unknown };
  const handle = routed.handle.bind(app);
  routed.handle = (request, response, next) => {
    const key = PLAIN_CHECK.exec(request.url)?.[1];
    if (key === undefined || !METHODS.includes(request.method)) {
      handle(request, response, next);
      return;
    }
    prepare(app, request, response);
    request.params = { key };
    const onError = (error: unknown): void => {
      try {
        fail(error, request, response, onError);
      } catch (fault) {
        response.destroy(fault as Error);
      }
    };
    try {
      takeIn(request, response);
      const answered = check(request, response, onError);
      if (answered instanceof Promise) answered.catch(onError);
    } catch (error) {
      onError(error);
    }
  };
}

/** Makes of Node's messages those of Express. */
function prepare(app: Express, request: Request, response: Response): void {
  Object.setPrototypeOf(request, app.request);
  Object.setPrototypeOf(response, app.response);
  request.res = response;
  response.req = request;
  response.locals = Object.create(null) as Response['locals'];
  request.originalUrl = request.url;
  request.baseUrl = '';
}
