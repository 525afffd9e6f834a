import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { Logger } from 'pino';

import { isRequestId } from '../../common/schemas.js';
import type { Settings } from '../../config/settings.js';
import type { Metrics } from '../../metrics/prometheus-metrics.js';
import type { Readiness } from '../../readiness/readiness.js';
import type { Rules } from '../../rules/rules.js';
import { BodyBudget } from '../../service/callers/body-budget.js';
import type { Service } from '../../service/service.js';
import { type ServiceError, serviceError } from '../../service/errors.js';
import { guardsOf } from '../auth/guards.js';
import { hostNameCheck } from '../intake/host-names.js';
import { takeIn } from '../intake/intake.js';
import { NO_PARAMETERS, PARAMETERS, parseQuery, type Query } from '../intake/parameters.js';
import { errorHandler } from '../replies/error-body.js';
import { logAnswersOf, logFailuresTo } from '../replies/request-log.js';
import { UnsentAnswers } from '../replies/unsent-answers.js';
import { checkMany, releaseMany } from './bulk.js';
import { checkRate } from './check-rate.js';
import { debugAll, debugOne } from './debug-handlers.js';
import {
  docsFile,
  docsPage,
  healthz,
  metricsText,
  openApiJson,
  readyz,
} from './service-handlers.js';
import { amendRequest, changeKey, endHold, releaseRequest, requestStatus } from './key-handlers.js';
import { type AnswerUnrouted, unroutedChecks } from './unrouted-checks.js';
import { dashboardRoutes } from './ui/dashboard-routes.js';
import { UI_PARAMETERS } from './ui/ui-parameters.js';

export interface HttpParts {
  readonly service: Service;
  readonly rules: Rules;
  readonly metrics: Metrics;
  readonly replica: string;
  readonly readiness: Readiness;
  readonly settings: Settings;
  readonly logger: Logger;
}

/** What answers the requests of a port. */
export interface HttpApp {
  readonly app: Express;
  /** Answers checks without parameters before `app` gets them; undefined on a port without checks. */
  readonly answerUnrouted: AnswerUnrouted | undefined;
  readonly unsent: UnsentAnswers;
}

/** The paths that a port serves. Every port also serves the health checks. */
export interface Surface {
  /** `/rate` */
  readonly limiting: boolean;
  /** `/debug` and `/ui` */
  readonly debugging: boolean;
  /** `/metrics` */
  readonly metrics: boolean;
  /** `/openapi.json` and `/docs` */
  readonly documents: boolean;
}

const SLASH_AFTER_KEY = /^\/rate\/[^/]*\//;

const LOGGED_PARAMETERS: ReadonlySet<string> = new Set([...PARAMETERS, ...UI_PARAMETERS]);

/** The HTTP surface of the service: every path, its methods, and their handlers. */
export function createHttpApp(parts: HttpParts, surface: Surface): HttpApp {
  const { service, settings, logger } = parts;
  const { limiter, access } = service;
  const guards = guardsOf(access, settings);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // A path names a key exactly: `/rate/a/` has no key, and does not stand for `a`.
  app.enable('strict routing');
  app.enable('case sensitive routing');
  app.set('query parser', (query: string | null) => parseQuery(query ?? ''));
  const unsent = new UnsentAnswers();
  app.locals.unsent = unsent;
  logAnswersOf(app, logger, settings, LOGGED_PARAMETERS);
  const logFailure = logFailuresTo(logger);
  const checkHostName = hostNameCheck(settings);
  const begin = (request: Request, response: Response): void => {
    // Without a listener, an answer to a client that has just disconnected would end the process.
    response.on('error', logFailure);
    takeIn(request, response);
    checkHostName?.(request.headers.host);
  };
  // One layer for both, since every request goes through each layer.
  app.use((request, response, next) => {
    begin(request, response);
    next();
  });

  const check = checkRate({ ...service, settings, logger });
  let answerUnrouted: AnswerUnrouted | undefined;
  if (surface.limiting) {
    const checkWith = (queryOf: (request: Request) => Query): RequestHandler =>
      guards.guard('check', (request, response, next) => {
        const key = request.params.key as string;
        const { hasBodyParameters } = response.locals;
        if (!hasBodyParameters) {
          check(key, queryOf(request), response, next);
          return;
        }
        hasBodyParameters
          .then((isMistaken) => {
            if (isMistaken) throw serviceError('PARAMETERS_IN_BODY', {});
            check(key, queryOf(request), response, next);
          })
          .catch(next);
      });
    const routedCheck = checkWith(({ query }) => query);
    const bulk = { ...service, settings, logger, budget: new BodyBudget() };
    route(app, '/rate', {
      POST: guards.guard('check', checkMany(bulk)),
      DELETE: guards.guard('release', releaseMany(bulk)),
    });
    const changeOne = guards.guard('check', changeKey(service) as RequestHandler);
    route(app, '/rate/:key', { GET: routedCheck, POST: routedCheck, PUT: changeOne });
    answerUnrouted = unroutedChecks(app, {
      takeIn: begin,
      check: checkWith(() => NO_PARAMETERS),
      fail: errorHandler,
    });
    const releaseOne = guards.guard('release', releaseRequest(service.release) as RequestHandler);
    const amendOne = guards.guard('check', amendRequest(service.amend) as RequestHandler);
    const endOne = guards.guard('configure', endHold(limiter) as RequestHandler);
    route(app, '/rate/:key/holders/:handle', { DELETE: endOne });
    const statusOne = guards.guard('check', requestStatus(limiter) as RequestHandler);
    const changes = { DELETE: releaseOne, PUT: amendOne };
    const ofRequest = byMethod({ GET: statusOne, ...changes }, refusalOfCheck);
    const ofOther = byMethod(changes, refusalOfCheck);
    // If the second part is no request id, a GET is a check whose key has a slash.
    app.all('/rate/:key/:requestId', (request, response, next) => {
      const handle = isRequestId(request.params.requestId) ? ofRequest : ofOther;
      return handle(request, response, next);
    });
  }
  if (surface.debugging) {
    // The guard is for all paths below /debug: a key that can't be decoded is answered, but reaches no route.
    app.use('/debug', guards.guard('debug', passOn));
    routeReads(app, '/debug', debugAll(limiter, parts.rules, access, service.slices));
    routeReads(app, '/debug/:key', debugOne(limiter) as RequestHandler);
    for (const [path, handlers] of dashboardRoutes({ ...parts, ...service, guards }, check)) {
      route(app, path, handlers);
    }
  }
  if (surface.metrics) {
    routeReads(app, '/metrics', guards.guardMetrics(metricsText(parts.metrics)));
  }
  if (surface.documents) {
    routeReads(app, '/openapi.json', openApiJson(settings));
    routeReads(app, '/docs', docsPage);
    routeReads(app, '/docs/:file', docsFile() as RequestHandler);
  }
  routeReads(app, '/healthz', healthz);
  routeReads(app, '/readyz', readyz(parts.readiness));

  app.use(({ path }: Request) => {
    const hasSlash = surface.limiting && SLASH_AFTER_KEY.test(path);
    throw serviceError(hasSlash ? 'SLASH_IN_KEY' : 'PATH_NOT_FOUND', { path });
  });
  app.use(errorHandler);
  return { app, answerUnrouted, unsent };
}

const passOn: RequestHandler = (_request, _response, next) => {
  next();
};

function routeReads(app: Express, path: string, handler: RequestHandler): void {
  route(app, path, { GET: handler, HEAD: handler });
}

type Handlers = Readonly<Record<string, RequestHandler>>;

/** Routes the given methods, as `byMethod` does. */
function route(app: Express, path: string, handlers: Handlers): void {
  app.all(path, byMethod(handlers, notAllowed));
}

/**
 * Handles the given methods, and answers every other method with a 405. Express would run HEAD as GET, which consumes on
 * `/rate`.
 * @param handlers by method
 * @param refusalOf the error for another method
 */
function byMethod(handlers: Handlers, refusalOf: (method: string) => ServiceError): RequestHandler {
  const allow = Object.keys(handlers).join(', ');
  return (request, response, next) => {
    const handler = handlers[request.method];
    if (handler) return handler(request, response, next);
    response.setHeader('Allow', allow);
    throw refusalOf(request.method);
  };
}

function notAllowed(method: string): ServiceError {
  return serviceError('METHOD_NOT_ALLOWED', { method });
}

function refusalOfCheck(method: string): ServiceError {
  return method === 'POST' || method === 'GET'
    ? serviceError('CHECK_HAS_REQUEST_ID', { method })
    : notAllowed(method);
}
