import { parse as parseQuery } from 'node:querystring';

import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import type { Limiter } from '../../limiter/limiter.js';
import type { Metrics } from '../../metrics/metrics.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type { Rules } from '../../rules/rules.js';
import type { Readiness } from '../../readiness/readiness.js';
import type { Tracer } from '../../tracing/tracer.js';
import type { Access } from '../auth/access.js';
import { BodyRoom } from '../intake/body-room.js';
import { hostNameCheck } from '../intake/host-names.js';
import { takeIn } from '../intake/intake.js';
import { NO_PARAMETERS, PARAMETERS, type Query } from '../intake/parameters.js';
import { errorHandler } from '../replies/error-handler.js';
import { httpError } from '../replies/http-error.js';
import { logAnswersOf, logFailuresTo } from '../replies/request-log.js';
import { checkMany } from './bulk/check-many.js';
import { releaseMany } from './bulk/release-many.js';
import type { Turns } from './bulk/turns.js';
import { checkRate } from './check-rate.js';
import { checkDecider } from '../deciding/decide-check.js';
import { debugAll, debugOne } from './debug-handlers.js';
import { untilDisconnect } from './disconnect.js';
import { docsFile, docsPage, openApiJson } from './document-handlers.js';
import { healthz, metricsText, readyz } from './health-handlers.js';
import { answerPlainChecks } from './plain-checks.js';
import { releaseBy } from '../deciding/release.js';
import { releaseRequest } from './release-request.js';
import { tracedCall, tracedDecider, tracedRelease } from '../deciding/traced-requests.js';
import { dashboardRoutes } from './ui/dashboard-routes.js';
import { UI_PARAMETERS } from './ui/ui-parameters.js';
import type { LatelyRefused } from '../deciding/lately-refused.js';
import type { UndecidedChecks } from '../deciding/undecided-checks.js';

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
  /** Shared by bulk requests and gRPC calls. */
  readonly turns: Turns;
  /** Undefined where requests are not traced. */
  readonly tracer?: Tracer | undefined;
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
  /** `/openapi.json` and `/docs` */
  readonly documents: boolean;
}

const LOGGED_PARAMETERS: ReadonlySet<string> = new Set([...PARAMETERS, ...UI_PARAMETERS]);

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
  logAnswersOf(app, parts.logger, parts.settings, LOGGED_PARAMETERS);
  const logFailure = logFailuresTo(parts.logger);
  const checkHostName = hostNameCheck(parts.settings);
  const begin = (request: Request, response: Response): void => {
    // An answer to a client that has just disconnected would end the process without a listener.
    response.on('error', logFailure);
    takeIn(request, response);
    checkHostName?.(request.headers.host);
  };
  // One layer does both, since every request goes through each layer.
  app.use((request, response, next) => {
    begin(request, response);
    next();
  });

  const { decide, release, checkAll, releaseAll } = limitingParts(parts);
  const check = checkRate(decide, parts);
  if (surface.limiting) {
    const checkWith = (queryOf: (request: Request) => Query): RequestHandler =>
      access.guard('check', (request, response) =>
        check(request.params.key as string, queryOf(request), response),
      );
    const routedCheck = checkWith(({ query }) => query);
    route(app, '/rate', {
      POST: access.guard('check', checkAll),
      DELETE: access.guard('release', releaseAll),
    });
    route(app, '/rate/:key', { GET: routedCheck, POST: routedCheck });
    const plainCheck = checkWith(() => NO_PARAMETERS);
    answerPlainChecks(app, { takeIn: begin, check: plainCheck, fail: errorHandler });
    const releaseOne = access.guard('release', releaseRequest(release) as RequestHandler);
    route(app, '/rate/:key/:requestId', { DELETE: releaseOne });
  }
  if (surface.debugging) {
    // The guard is for all paths below: a key that can't be decoded has an answer, but reaches no route.
    app.use('/debug', access.guard('debug', passOn));
    routeReads(app, '/debug', debugAll(limiter, parts.rules, access));
    routeReads(app, '/debug/:key', debugOne(limiter) as RequestHandler);
    for (const [path, handlers] of dashboardRoutes(parts, check, release)) {
      route(app, path, handlers);
    }
  }
  if (surface.metrics) {
    routeReads(app, '/metrics', access.guardMetrics(metricsText(parts.metrics)));
  }
  if (surface.documents) {
    routeReads(app, '/openapi.json', openApiJson(parts.settings));
    routeReads(app, '/docs', docsPage);
    routeReads(app, '/docs/:file', docsFile() as RequestHandler);
  }
  routeReads(app, '/healthz', healthz);
  routeReads(app, '/readyz', readyz(parts.readiness));

  app.use((request: Request) => {
    throw httpError('PATH_NOT_FOUND', { path: request.path });
  });
  app.use(errorHandler);
  return app;
}

/** What decides and releases, for one in a request and for many; with spans where there is a tracer. */
function limitingParts({ tracer, ...parts }: HttpParts) {
  const decider = checkDecider({
    ...parts,
    untilDisconnect: (response: Response, work) => untilDisconnect(response.req.socket, work),
  });
  const releaser = releaseBy(parts.limiter);
  const decide = tracer ? tracedDecider(decider, tracer) : decider;
  const release = tracer ? tracedRelease(releaser, tracer) : releaser;
  const bulkParts = {
    ...parts,
    decide,
    release,
    room: new BodyRoom(),
  };
  const checkAll = checkMany(bulkParts);
  const releaseAll = releaseMany(bulkParts);
  if (!tracer) return { decide, release, checkAll, releaseAll };
  return {
    decide,
    release,
    checkAll: tracedCall(checkAll, 'check many', tracer),
    releaseAll: tracedCall(releaseAll, 'release many', tracer),
  };
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
