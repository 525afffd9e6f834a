import type { Express, Request, Response } from 'express';
import type { Logger } from 'pino';
import { pinoHttp, startTime } from 'pino-http';

import { levelOf, type LoggedStatuses, logSubject } from '../../service/request-context.js';

type LogAnswer = (response: Response, status: number) => void;

/** Names of headers whose values may be secrets, such as `Authorization`, `Cookie` or `X-Api-Key`. */
const SECRET_HEADER = /auth|cookie|token|secret|key|password|signature/i;

/**
 * Has pino-http log the answers of `app`, one line each, if the settings and the logger's level ask for it.
 *
 * pino-http makes a logger for each request that it gets. This module hands a request over when the status of its
 * answer is known, and only if the answer is logged. Other answers cost nothing (BENCHMARKS.md).
 * @param parameters the query parameters that the log may show
 */
export function logAnswersOf(
  app: Express,
  logger: Logger,
  statuses: LoggedStatuses,
  parameters: ReadonlySet<string>,
): void {
  const followWithPinoHttp = pinoHttp<Request, Response>({
    logger,
    // The logger keeps its own serializer of errors: pino-http's serializer shows the fields that libraries attach to
    // an error.
    wrapSerializers: false,
    serializers: {
      req: (request: Request) => describeRequest(request, parameters),
      // Node does not keep the headers that `writeHead` was given.
      res: ({ statusCode }: Response) => ({ statusCode }),
    },
    redact: { paths: ['req.headers.*'], censor: hideSecret },
    customLogLevel: (_request, response, error) => {
      // `logFailuresTo` logs a response that fails. A client that disconnected got no answer.
      if (error) return 'silent';
      if (!response.err && !response.writableEnded) return 'silent';
      return levelOf(finalStatus(response), statuses);
    },
    customSuccessMessage: () => 'request completed',
    customSuccessObject: (request, response, line: object) => ({
      ...subjectOf(request, response),
      ...line,
    }),
    customErrorObject: (
      request,
      response,
      _error,
      line: { res: Response; responseTime: number },
    ) => {
      const { res, responseTime } = line;
      const cause =
        finalStatus(response) === 503 ? { reason: response.err?.message } : { err: response.err };
      return { ...subjectOf(request, response), res, responseTime, ...cause };
    },
  });

  const logAnswer: LogAnswer = (response, status) => {
    const level = levelOf(status, statuses);
    if (level === 'silent' || !logger.isLevelEnabled(level)) return;
    // A body may fail after its head has gone out. pino-http already follows such an answer.
    if (response[startTime]) return;
    const elapsedMillis = performance.now() - response.locals.context.startedAt;
    response[startTime] = Math.round(Date.now() - elapsedMillis);
    followWithPinoHttp(response.req, response);
  };
  app.locals.logAnswer = logAnswer;
}

/** Passes the status of an answer to the log. Has to be called before the head goes out. */
export function logAnswer(response: Response, status: number): void {
  (response.app.locals.logAnswer as LogAnswer)(response, status);
}

/** A listener that logs the errors of responses. One function serves all: `this` is the response. */
export function logFailuresTo(logger: Logger): (this: Response, error: Error) => void {
  return function (error) {
    logger.error({ ...logSubject(this.locals.context), err: error }, 'response failed');
  };
}

/** The status for the log. A body may fail after a head with status 200 has gone out. */
function finalStatus({ err, statusCode }: Response): number {
  return err ? Math.max(500, statusCode) : statusCode;
}

function describeRequest(request: Request, parameters: ReadonlySet<string>): object {
  const { method, originalUrl, headers, socket } = request;
  return {
    method,
    url: loggedUrl(originalUrl, parameters),
    headers,
    remoteAddress: socket.remoteAddress,
    remotePort: socket.remotePort,
  };
}

function hideSecret(value: unknown, path: readonly string[]): unknown {
  if (SECRET_HEADER.test(path.at(-1) ?? '')) return '[Redacted]';
  return typeof value === 'string' ? withoutUrlSecrets(value) : value;
}

function subjectOf(request: Request, response: Response): object {
  const { context, errorCode, limit } = response.locals;
  return { ...logSubject(context), key: keyOf(request), errorCode, limit };
}

const HIDDEN = '[Redacted]';

const WORD = /[^\s"]+/g;

/** Where a key stands in a path or in a URL. Whatever it is, it is shown: the log has it as `key` as well. */
const UP_TO_KEY = /^(?:https?:\/\/[^/]*)?\/(?:rate|debug)\/[^/]+/;
/**
 * A request id is a secret: with it, anyone may take the place or the approval. Any other part of a path that is long
 * enough may be one, wherever a mistaken path has it. It has 36 characters, 32 without hyphens, more if any are encoded.
 */
const MAYBE_REQUEST_ID = /[^/]{32,}/g;
const REQUEST_ID_IN_QUERY = 'requestId';

/**
 * A URL as the log shows it: the path, and the query parameters that Sluice reads, without request ids. Other parameters
 * may be secrets, such as `?access_token=...`, and so may their names.
 */
function loggedUrl(url: string, parameters: ReadonlySet<string>): string {
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  const shownPath = withoutRequestIds(path);
  if (end === -1) return shownPath;
  const parts = url.slice(end + 1).split(/[&#]/);
  const shown = parts.map((part) => {
    const name = part.split('=', 1)[0] ?? '';
    if (part === '') return part;
    if (!parameters.has(name) || part === name) return HIDDEN;
    return name === REQUEST_ID_IN_QUERY ? `${name}=${HIDDEN}` : part;
  });
  return `${shownPath}?${shown.join('&')}`;
}

/** The value of a header such as `Referer`, without the request ids, queries and fragments of its URLs. */
function withoutUrlSecrets(value: string): string {
  return value.replace(WORD, (word) => {
    const path = word.split(/[?#]/, 1)[0] ?? '';
    if (!path.includes('/')) return word;
    const shownPath = withoutRequestIds(path);
    return path === word ? shownPath : `${shownPath}?${HIDDEN}`;
  });
}

function withoutRequestIds(path: string): string {
  const shownLength = UP_TO_KEY.exec(path)?.[0].length ?? 0;
  return path.slice(0, shownLength) + path.slice(shownLength).replace(MAYBE_REQUEST_ID, HIDDEN);
}

/**
 * The limiter key in the path of a request, or in the query of a request of the dashboard. Express drops the parameters
 * of a route before the error handler runs.
 * @returns the key decoded, or as it stands in the path if its encoding is invalid; undefined if there is none
 */
export function keyOf(request: Request): string | undefined {
  const [, resource, key] = (request.baseUrl + request.path).split('/');
  if (resource === 'ui') {
    const asked = request.query.key;
    return typeof asked === 'string' && asked !== '' ? asked : undefined;
  }
  if (!key || (resource !== 'rate' && resource !== 'debug')) return undefined;
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
