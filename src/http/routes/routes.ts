import express, { type Request, type RequestHandler, type Response } from 'express';

import { isRequestId } from '../../common/schemas.js';
import { BodyBudget } from '../../service/callers/body-budget.js';
import { type ServiceError, serviceError } from '../../service/errors.js';
import type { Scope } from '../../service/request-context.js';
import { guardOf } from '../auth/guards.js';
import { hostNameCheck } from '../intake/host-names.js';
import { takeIn } from '../intake/intake.js';
import { NO_PARAMETERS, PARAMETERS, parseQuery, type Query } from '../intake/parameters.js';
import { errorHandler } from '../replies/error-body.js';
import { logAnswersOf, logFailuresTo } from '../replies/request-log.js';
import { UnsentAnswers } from '../replies/unsent-answers.js';
import { checkMany, releaseMany } from './bulk.js';
import { byMethod, notAllowed, route, routeReads } from './by-method.js';
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
import type { HttpParts } from './http-parts.js';
import { type KeyAnswer, keyAnswers } from './key-answers.js';
import { unroutedChecks } from './unrouted-checks.js';
import { routeDashboard } from './ui/dashboard-routes.js';
import { UI_PARAMETERS } from './ui/ui-parameters.js';

/** What answers the requests of a port. */
export type HttpApp = ReturnType<typeof createHttpApp>;

/** The paths that a port serves. Every port also serves the health checks. */
export interface Surface {
  /** `/rate` */
  readonly limiting: boolean;
  /** `/debug` and `/ui` */
  readonly debugging: boolean;
  /** `/metrics`, `/openapi.json` and `/docs` */
  readonly telling: boolean;
}

const RATE = /^\/rate(?:\/|$)/;
const SLASH_AFTER_KEY = /^\/rate\/[^/]*\//;

const LOGGED_PARAMETERS: ReadonlySet<string> = new Set([...PARAMETERS, ...UI_PARAMETERS]);

/** The HTTP surface of the service: every path, its methods, and their handlers. */
export function createHttpApp(parts: HttpParts, surface: Surface) {
  const { service, settings, logger } = parts;
  const guard = guardOf(service.access, settings);
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

  const check = checkRate(parts);
  const answers = keyAnswers(service);
  /** Answers checks without parameters before `app` gets them; undefined on a port without checks. */
  let answerUnrouted: ReturnType<typeof unroutedChecks> | undefined;
  if (surface.limiting) {
    const checkWith = (queryOf: (request: Request) => Query): RequestHandler =>
      guard('check', (request, response, next) => {
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
    const budget = new BodyBudget();
    route(app, '/rate', {
      POST: guard('check', checkMany(parts, budget)),
      DELETE: guard('release', releaseMany(parts, budget)),
    });
    const answering = (scope: Scope, answer: KeyAnswer<'requestId' | 'handle'>): RequestHandler =>
      guard(scope, ({ params, query }, response) =>
        answer(params as Parameters<typeof answer>[0], query, response),
      );
    const changeKey = answering('check', answers.changeKey);
    route(app, '/rate/:key', { GET: routedCheck, POST: routedCheck, PUT: changeKey });
    answerUnrouted = unroutedChecks(
      app,
      begin,
      checkWith(() => NO_PARAMETERS),
    );
    route(app, '/rate/:key/holders/:handle', { DELETE: answering('configure', answers.endHold) });
    const changes = {
      DELETE: answering('release', answers.releaseOne),
      PUT: answering('check', answers.amendOne),
    };
    const showStatus = answering('check', answers.showStatus);
    const ofRequest = byMethod({ GET: showStatus, ...changes }, refusalOfCheck);
    const ofOther = byMethod(changes, refusalOfCheck);
    // If the second part is no request id, a GET is a check whose key has a slash.
    app.all('/rate/:key/:requestId', (request, response, next) => {
      const handle = isRequestId(request.params.requestId) ? ofRequest : ofOther;
      return handle(request, response, next);
    });
  }
  if (surface.debugging) {
    // The guard is for all paths below /debug: a key that can't be decoded is answered, but reaches no route.
    app.use('/debug', guard('debug', passOn));
    routeReads(app, '/debug', debugAll(parts));
    routeReads(app, '/debug/:key', debugOne(service) as RequestHandler);
    routeDashboard(app, parts, guard, check, answers);
  }
  if (surface.telling) {
    routeReads(app, '/metrics', guard('metrics', metricsText(parts.metrics)));
    routeReads(app, '/openapi.json', openApiJson(settings));
    routeReads(app, '/docs', docsPage);
    routeReads(app, '/docs/:file', docsFile() as RequestHandler);
  }
  routeReads(app, '/healthz', healthz);
  routeReads(app, '/readyz', readyz(parts.readiness));

  app.use(({ path }: Request) => {
    if (!RATE.test(path)) throw serviceError('PATH_NOT_FOUND', { path });
    if (!surface.limiting) throw serviceError('PATH_OF_OTHER_PORT', { path });
    throw serviceError(SLASH_AFTER_KEY.test(path) ? 'SLASH_IN_KEY' : 'PATH_NOT_FOUND', { path });
  });
  app.use(errorHandler);
  return { app, answerUnrouted, unsent };
}

const passOn: RequestHandler = (_request, _response, next) => {
  next();
};

function refusalOfCheck(method: string): ServiceError {
  return method === 'POST' || method === 'GET'
    ? serviceError('CHECK_HAS_REQUEST_ID', { method })
    : notAllowed(method);
}
