import type { RequestHandler } from 'express';

import type { Guard } from '../../auth/guards.js';
import { NO_PARAMETERS } from '../../intake/parameters.js';
import { BROWSER_HEADERS, PLAIN_TEXT, send } from '../../replies/reply.js';
import type { CheckRate } from '../check-rate.js';
import type { HttpParts } from '../http-parts.js';
import type { KeyAnswers } from '../key-answers.js';
import { keyDetail } from './key-detail.js';
import { overview } from './overview.js';
import { pageFileHandlers } from './page-files.js';
import { parseKeyIn, parseText } from './ui-parameters.js';

type Handlers = Readonly<Record<string, RequestHandler>>;

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
 * @param answers as on `/rate`
 */
export function dashboardRoutes(
  parts: HttpParts,
  guard: Guard,
  check: CheckRate,
  answers: KeyAnswers,
): [string, Handlers][] {
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
  return [
    ['/', reads(toDashboard)],
    ...files,
    ['/ui/data', reads(guard('debug', overview(parts)))],
    ['/ui/data/key', reads(guard('debug', keyDetail(parts)))],
    ['/ui/holds/end', { POST: guard('configure', endHold) }],
    ['/ui/pause', { POST: guard('check', pauseKey) }],
    ['/ui/try/check', { POST: guard('check', tryCheck) }],
    ['/ui/try/release', { POST: guard('release', tryRelease) }],
  ];
}
