import type { Express, RequestHandler } from 'express';

import type { Guard } from '../../auth/guards.js';
import { NO_PARAMETERS } from '../../intake/parameters.js';
import { BROWSER_HEADERS, PLAIN_TEXT, send } from '../../replies/reply.js';
import { route, routeReads } from '../by-method.js';
import type { CheckRate } from '../check-rate.js';
import type { HttpParts } from '../http-parts.js';
import type { KeyAnswers } from '../key-answers.js';
import { keyDetail } from './key-detail.js';
import { overview } from './overview.js';
import { pageFileHandlers } from './page-files.js';
import { parseKeyIn, parseText } from './ui-parameters.js';

/** Relative, since a proxy may serve Sluice below a path. */
const toDashboard: RequestHandler = (_request, response) => {
  send(response, 303, PLAIN_TEXT, '', ['Location', 'ui', ...BROWSER_HEADERS]);
};

/** The file that is served at `/ui` itself. */
const PAGE = 'index.html';

/**
 * Routes the paths of the dashboard. Checks and releases can also be tried, keys paused and holds ended, on the admin port, which
 * has no `/rate`: the page may send requests only to its own port. Keys are in queries, since browsers fold `..` in a path.
 * @param check as on `/rate`
 * @param answers as on `/rate`
 */
export function routeDashboard(
  app: Express,
  parts: HttpParts,
  guard: Guard,
  check: CheckRate,
  answers: KeyAnswers,
): void {
  const tryCheck: RequestHandler = ({ query }, response, next) => {
    const parameters = { ...query };
    delete parameters.key;
    check(parseText(query, 'key'), parameters, response, next);
  };
  const tryRelease: RequestHandler = ({ query }, response) => {
    const requestId = parseText(query, 'request_id');
    const names = { key: parseText(query, 'key'), requestId };
    return answers.releaseOne(names, NO_PARAMETERS, response);
  };
  const endHold: RequestHandler = ({ query }, response) => {
    const names = { key: parseText(query, 'key'), handle: parseText(query, 'handle') };
    return answers.endHold(names, NO_PARAMETERS, response);
  };
  const pauseKey: RequestHandler = ({ query }, response) => {
    const { pauseMillis } = query;
    return answers.changeKey({ key: parseKeyIn(query) }, { pauseMillis }, response);
  };
  routeReads(app, '/', toDashboard);
  for (const [name, handler] of pageFileHandlers()) {
    routeReads(app, name === PAGE ? '/ui' : `/ui/${name}`, handler);
  }
  routeReads(app, '/ui/data', guard('debug', overview(parts)));
  routeReads(app, '/ui/data/key', guard('debug', keyDetail(parts)));
  route(app, '/ui/holds/end', { POST: guard('configure', endHold) });
  route(app, '/ui/pause', { POST: guard('check', pauseKey) });
  route(app, '/ui/try/check', { POST: guard('check', tryCheck) });
  route(app, '/ui/try/release', { POST: guard('release', tryRelease) });
}
