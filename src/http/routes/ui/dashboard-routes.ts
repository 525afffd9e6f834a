import type { RequestHandler } from 'express';

import type { Limiter } from '../../../limiter/limiter.js';
import type { Service } from '../../../service/service.js';
import type { Guards } from '../../auth/guards.js';
import { parsePause } from '../../intake/parameters.js';
import { BROWSER_HEADERS, PLAIN_TEXT, send } from '../../replies/reply.js';
import type { CheckRate } from '../check-rate.js';
import { answerHoldEnd, answerPause, answerRelease } from '../key-handlers.js';
import { keyDetail } from './key-detail.js';
import { overview, type OverviewParts } from './overview.js';
import { pageFileHandlers } from './page-files.js';
import { parseKeyIn, parseText } from './ui-parameters.js';

type Handlers = Readonly<Record<string, RequestHandler>>;

interface DashboardParts extends OverviewParts, Pick<Service, 'pause' | 'release'> {
  readonly guards: Guards;
  readonly limiter: Limiter;
}

/** Relative, since a proxy may serve Sluice below a path. */
const toDashboard: RequestHandler = (_request, response) => {
  send(response, 303, PLAIN_TEXT, '', ['Location', 'ui', ...BROWSER_HEADERS]);
};

/** The file that is served at `/ui` itself. */
const PAGE = 'index.html';

/**
 * The paths of the dashboard. Checks and releases can also be tried, keys paused and holds ended, on the admin port, which
 * has no `/rate`: the page may send requests only to its own port. Keys are in queries, since browsers fold `..` in a path.
 * @param check as on `/rate`
 */
export function dashboardRoutes(parts: DashboardParts, check: CheckRate): [string, Handlers][] {
  const { guards, limiter, pause, release } = parts;
  const reads = (handler: RequestHandler): Handlers => ({ GET: handler, HEAD: handler });
  const files = [...pageFileHandlers()].map(([name, handler]): [string, Handlers] => [
    name === PAGE ? '/ui' : `/ui/${name}`,
    reads(handler),
  ]);
  const tryCheck: RequestHandler = ({ query }, response, next) => {
    const parameters = { ...query };
    delete parameters.key;
    check(parseText(query, 'key'), parameters, response, next);
  };
  const tryRelease: RequestHandler = ({ query }, response) => {
    const requestId = parseText(query, 'request_id');
    return answerRelease(release, parseText(query, 'key'), requestId, response);
  };
  const endHold: RequestHandler = ({ query }, response) =>
    answerHoldEnd(limiter, parseText(query, 'key'), parseText(query, 'handle'), response);
  const pauseKey: RequestHandler = ({ query }, response) =>
    answerPause(pause, parseKeyIn(query), parsePause(query), response);
  return [
    ['/', reads(toDashboard)],
    ...files,
    ['/ui/data', reads(guards.guard('debug', overview(parts)))],
    ['/ui/data/key', reads(guards.guard('debug', keyDetail(parts)))],
    ['/ui/holds/end', { POST: guards.guard('configure', endHold) }],
    ['/ui/pause', { POST: guards.guard('check', pauseKey) }],
    ['/ui/try/check', { POST: guards.guard('check', tryCheck) }],
    ['/ui/try/release', { POST: guards.guard('release', tryRelease) }],
  ];
}
