import { STATUS_CODES } from 'node:http';

import type { ErrorRequestHandler, Request, Response } from 'express';

import type { ErrorBody } from '../../api/answers.js';
import {
  type ErrorCode,
  errorRow,
  ServiceError,
  serviceError,
  ERRORS,
  errorKindOf,
} from '../../service/errors.js';
import { serviceErrorFor } from '../../service/store-failures.js';
import { BROWSER_HEADERS, type Headers, JSON_TYPE, PLAIN_TEXT, send, sendJson } from './reply.js';
import { keyOf, logAnswer } from './request-log.js';

/** RFC 9457. */
export const PROBLEM_TYPE = 'application/problem+json';

/**
 * The types of problems in draft-ietf-httpapi-ratelimit-headers-11, with their titles. Other errors have no type of their own.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/11/
 */
const PROBLEMS = {
  deny: {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
  },
  fail: {
    type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    title: 'Request cannot be satisfied due to temporary server capacity constraints',
  },
} as const;

/**
 * Answers with an error in the form that the request accepts: as a problem only if it prefers one to plain JSON.
 * @param violatedPolicies of a denial: the names in `RateLimit-Policy` of what denies
 */
export function sendErrorBody(
  response: Response,
  body: ErrorBody,
  headers: Headers,
  violatedPolicies?: readonly string[],
): void {
  const { status } = ERRORS[body.code];
  if (!prefersProblem(response.req)) {
    sendJson(response, status, body, headers);
    return;
  }
  const { error: detail, ...others } = body;
  const problem = { ...typeOf(body.code), status, detail, ...others };
  const text = JSON.stringify({ ...problem, 'violated-policies': violatedPolicies });
  send(response, status, PROBLEM_TYPE, text, headers);
}

/** Nearly no request names it, and its header is parsed only then. */
function prefersProblem(request: Request): boolean {
  const { accept } = request.headers;
  if (!accept?.includes('problem+json')) return false;
  return request.accepts([JSON_TYPE, PROBLEM_TYPE]) === PROBLEM_TYPE;
}

function typeOf(code: ErrorCode): { readonly type: string; readonly title: string } {
  const { status } = ERRORS[code];
  const kind = errorKindOf(code);
  if (kind === 'deny' || (kind === 'fail' && status === 503)) return PROBLEMS[kind];
  return { type: 'about:blank', title: STATUS_CODES[status] ?? '' };
}

const REALM = 'Bearer realm="sluice"';

/** Answers every error, nearly all with a body in JSON. A fault of Sluice never looks like a denial. */
export const errorHandler: ErrorRequestHandler = (error: unknown, request, response, _next) => {
  if (response.headersSent) {
    // The client must not take part of the body for the whole.
    response.err = error as Error;
    logAnswer(response, ERRORS.INTERNAL_ERROR.status);
    response.destroy();
  } else if (error instanceof URIError && 'status' in error && error.status === 400) {
    // Express's router could not decode a parameter.
    answerBadEncoding(request, response);
  } else {
    // For the log, unless the service rejected the request.
    if (!(error instanceof ServiceError)) response.err = error as Error;
    sendError(request, response, serviceErrorFor(error));
  }
};

function sendError(request: Request, response: Response, error: ServiceError): void {
  const { code, message } = error;
  const { status, body, retryAfter } = errorRow(code);
  const key = body === 'without key' ? undefined : keyOf(request);
  const headers = [...BROWSER_HEADERS, ...challengeOf(error)];
  if (retryAfter !== undefined) headers.push('Retry-After', retryAfter);
  response.locals.errorCode = code;
  if (body === 'plain text') send(response, status, PLAIN_TEXT, message, headers);
  else sendErrorBody(response, { error: message, key, code }, headers);
}

/** Says which token is wanted: RFC 6750, section 3. */
function challengeOf({ code, values }: ServiceError): Headers {
  switch (code) {
    case 'TOKEN_REQUIRED':
      return ['WWW-Authenticate', REALM];
    case 'TOKEN_UNKNOWN':
      return ['WWW-Authenticate', `${REALM}, error="invalid_token"`];
    case 'SCOPE_MISSING':
      return ['WWW-Authenticate', `${REALM}, error="insufficient_scope", scope="${values.scope}"`];
    default:
      return [];
  }
}

/** Names the first part of the path that can't be decoded. */
function answerBadEncoding(request: Request, response: Response): void {
  const [, resource, key] = request.path.split('/');
  if (resource === 'debug' && (request.method === 'GET' || request.method === 'HEAD')) {
    // Every read of a key is answered 200. A key that can't be decoded has no instance.
    sendJson(response, 200, { Key: key, Found: false }, BROWSER_HEADERS);
    return;
  }
  const part = keyOf(request) === key && key?.includes('%') ? 'key' : 'requestId';
  sendError(request, response, serviceError('INVALID_ENCODING', { part }));
}
