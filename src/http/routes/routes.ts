import { parse as parseQuery } from 'node:querystring';

import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { Logger } from 'pino';

import { eventLoop } from '../../common/ticks.js';
import type { Settings } from '../../config/settings.js';
import type { Limiter } from '../../limiter/limiter.js';
import type { Metrics } from '../../metrics/metrics.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type { Rules } from '../../rules/rules.js';
import type { Readiness } from '../../readiness/readiness.js';
import type { Access } from '../auth/access.js';
import { BodyRoom } from '../intake/body-room.js';
import { takeIn } from '../intake/intake.js';
import { NO_PARAMETERS, type Query } from '../intake/parameters.js';
import { errorHandler } from '../replies/error-handler.js';
import { httpError } from '../replies/http-error.js';
import { logAnswersOf, logFailuresTo } from '../replies/request-log.js';
import { checkMany } from './bulk/check-many.js';
import { releaseMany } from './bulk/release-many.js';
import { Turns } from './bulk/turns.js';
import { checkRate } from './check-rate.js';
import { checkDecider } from './decide-check.js';
import { debugAll, debugOne } from './debug-handlers.js';
import { healthz, metricsText, readyz } from './health-handlers.js';
import { answerPlainChecks } from './plain-checks.js';
import { releaseRequest } from './release-request.js';
import { dashboardRoutes } from './ui/dashboard-routes.js';
import type { LatelyRefused } from './ui/lately-refused.js';
import type { UndecidedChecks } from './undecided-checks.js';

/** The parts of the service that the routes use. */
export interface HttpParts {
  readonly limiter: Limiter;
  /** What applies to a key as of now. */
  readonly policyOf: (key: string) => KeyPolicy;
  readonly rules: Rules;
  readonly metrics: Metrics;
  readonly undecided: Pick<UndecidedChecks, 'note'>;
  readonly lately: LatelyRefused;
  /** The name of this replica. */
  readonly replica: string;
  readonly readiness: Readiness;
  readonly access: Access;
  readonly settings: Settings;
  readonly logger: Logger;
}

/** Which paths a port serves. The health checks are on every port. */
export interface Surface {
  /** `/rate` */
  readonly limiting: boolean;
  /** `/debug` and `/ui` */
  readonly debugging: boolean;
  /** `/metrics` */
  readonly metrics: boolean;
}

/** The service's HTTP surface: every path, its methods, and what answers them. */
export function createHttpApp(parts: HttpParts, surface: Surface): Express {
  const { limiter, access } = parts;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // A path names a key to the letter: `/rate/a/` asks for no key, not for `a`.
  app.enable('strict routing');
  app.enable('case sensitive routing');
  // The parser would ignore parameters beyond a limit. The length of the URL limits them already.
  app.set('query parser', (query: string | null) =>
    parseQuery(query ?? '', '&', '=', { maxKeys: 0 }),
  );
  logAnswersOf(app, parts.logger, parts.settings);
  const logFailure = logFailuresTo(parts.logger);
  const begin = (request: Request, response: Response): void => {
    // An answer to a client that has just disconnected would end the process without a listener.
    response.on('error', logFailure);
    takeIn(request, response);
  };
  // One layer does both, since every request goes through each layer.
  app.use((request, response, next) => {
    begin(request, response);
    next();
  });

  const decide = checkDecider(parts);
  const check = checkRate(decide, parts);
  if (surface.limiting) {
    const checkWith = (queryOf: (request: Request) => Query): RequestHandler =>
      access.guard('check', (request, response) =>
        check(request.params.key as string, queryOf(request), response),
      );
    const routedCheck = checkWith(({ query }) => query);
    const release = access.guard('release', releaseRequest(limiter) as RequestHandler);
    const bulkParts = { ...parts, decide, turns: new Turns(eventLoop), room: new BodyRoom() };
    route(app, '/rate', {
      POST: access.guard('check', checkMany(bulkParts)),
      DELETE: access.guard('release', releaseMany(bulkParts)),
    });
    route(app, '/rate/:key', { GET: routedCheck, POST: routedCheck });
    const plainCheck = checkWith(() => NO_PARAMETERS);
    answerPlainChecks(app, { takeIn: begin, check: plainCheck, fail: errorHandler });
    route(app, '/rate/:key/:requestId', { DELETE: release });
  }
  if (surface.debugging) {
    // The guard is for all paths below: a key that can't be decoded has an answer, but reaches no route.
    app.use('/debug', access.guard('debug', passOn));
    routeReads(app, '/debug', debugAll(limiter, parts.rules, access));
    routeReads(app, '/debug/:key', debugOne(limiter) as RequestHandler);
    for (const [path, handlers] of dashboardRoutes(parts, check)) route(app, path, handlers);
  }
  if (surface.metrics) {
    routeReads(app, '/metrics', access.guardMetrics(metricsText(parts.metrics)));
  }
  routeReads(app, '/healthz', healthz);
  routeReads(app, '/readyz', readyz(parts.readiness));

  app.use((request: Request) => {
    throw httpError('PATH_NOT_FOUND', { path: request.path });
  });
  app.use(errorHandler);
  return app;
}

const passOn: RequestHandler = (_request, _response, next) => {
  next();
};

function routeReads(app: Express, path: string, handler: RequestHandler): void {
  route(app, path, { GET: handler, HEAD: handler });
}

/**
 * Answers the methods given, and every other with a 405. Express would run HEAD as GET, which consumes on
 * `/rate`.
 * @param handlers by method
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
    throw httpError('METHOD_NOT_ALLOWED', { method: request.method });
  });
}
