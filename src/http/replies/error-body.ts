import type { Request, Response } from 'express';
import { STATUS_CODES } from 'node:http';

import type { ErrorBody } from '../../api/answers.js';
import { type ErrorCode, errorRow } from '../../service/errors.js';
import type { Headers } from './headers.js';
import { JSON_TYPE, send, sendJson } from './reply.js';

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
  status: number,
  body: ErrorBody,
  headers: Headers,
  violatedPolicies?: readonly string[],
): void {
  if (!prefersProblem(response.req)) {
    sendJson(response, status, body, headers);
    return;
  }
  const { error: detail, ...others } = body;
  const problem = { ...typeOf(body.code, status), status, detail, ...others };
  const text = JSON.stringify({ ...problem, 'violated-policies': violatedPolicies });
  send(response, status, PROBLEM_TYPE, text, headers);
}

/** Nearly no request names it, and its header is parsed only then. */
function prefersProblem(request: Request): boolean {
  const { accept } = request.headers;
  if (!accept?.includes('problem+json')) return false;
  return request.accepts([JSON_TYPE, PROBLEM_TYPE]) === PROBLEM_TYPE;
}

function typeOf(
  code: ErrorCode,
  status: number,
): { readonly type: string; readonly title: string } {
  const { kind } = errorRow(code);
  if (kind === 'deny' || (kind === 'fail' && status === 503)) return PROBLEMS[kind];
  return { type: 'about:blank', title: STATUS_CODES[status] ?? '' };
}
