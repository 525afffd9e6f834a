import type { RequestHandler } from 'express';

import type { Limiter } from '../../../limiter/limiter.js';
import type { Access } from '../../auth/access.js';
import { httpError } from '../../replies/http-error.js';
import { sendJson } from '../../replies/reply.js';
import type { CheckRate } from '../check-rate.js';
import { keyDetail } from './key-detail.js';
import { overview, type OverviewParts } from './overview.js';
import { pageFileHandlers } from './page-files.js';
import { parseKeyIn, parseText } from './ui-parameters.js';

/** The handlers of a path, by method. */
type Handlers = Readonly<Record<string, RequestHandler>>;

interface DashboardParts extends OverviewParts {
  readonly access: Access;
  readonly lately: OverviewParts['lately'] & Parameters<typeof keyDetail>[0]['lately'];
}

/** The page of the file that is served at `/ui` itself. */
const PAGE = 'index.html';

/**
 * The paths of the dashboard. Checks and releases can be tried on the admin port, too, which has no `/rate`: the page may
 * ask nobody else. Keys are in queries, since browsers fold `..` in a path.
 * @param check as on `/rate`
 */
export function dashboardRoutes(parts: DashboardParts, check: CheckRate): [string, Handlers][] {
  const { access, limiter } = parts;
  const reads = (handler: RequestHandler): Handlers => ({ GET: handler, HEAD: handler });
  const files = [...pageFileHandlers()].map(([name, handler]): [string, Handlers] => [
    name === PAGE ? '/ui' : `/ui/${name}`,
    reads(handler),
  ]);
  const tryCheck: RequestHandler = ({ query }, response) =>
    check(parseText(query, 'key'), query, response);
  return [
    ...files,
    ['/ui/data', reads(access.guard('debug', overview(parts)))],
    ['/ui/data/key', reads(access.guard('debug', keyDetail(parts)))],
    ['/ui/try/check', { POST: access.guard('check', tryCheck) }],
    ['/ui/try/release', { POST: access.guard('release', tryRelease(limiter)) }],
  ];
}

function tryRelease(limiter: Pick<Limiter, 'release'>): RequestHandler {
  return async ({ query }, response) => {
    const requestId = parseText(query, 'request_id');
    if (!(await limiter.release(parseKeyIn(query), requestId))) {
      throw httpError('REQUEST_NOT_FOUND', {});
    }
    sendJson(response, 200, { request_id: requestId });
  };
}
