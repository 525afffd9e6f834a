import type { ErrorRequestHandler, Request, Response } from 'express';

import { errorAnswer, ERRORS } from './errors.js';
import { BROWSER_HEADERS } from './headers.js';
import { HttpError, httpError } from './http-error.js';
import { httpErrorFor } from './http-error-for.js';
import { keyOf } from './key-of.js';
import { sendJson } from './reply.js';
import { logAnswer } from './request-log.js';

/** Answers every error with a JSON body; a fault of Sluice never looks like a refusal. */
export const errorHandler: ErrorRequestHandler = (error: unknown, request, response, _next) => {
  if (response.headersSent) {
    cutShort(response, error as Error);
  } else if (isBadEncoding(error)) {
    answerBadEncoding(request, response);
  } else {
    sendError(request, response, toHttpError(error, response));
  }
};

/** Cuts an answer whose head is out. Its client must not take the part of the body for the whole. */
function cutShort(response: Response, fault: Error): void {
  response.err = fault;
  logAnswer(response, ERRORS.INTERNAL_ERROR.status);
  response.destroy();
}

/** The answer to an error. The log has the error itself, too, unless the service refused on purpose. */
function toHttpError(error: unknown, response: Response): HttpError {
  if (!(error instanceof HttpError)) response.err = error as Error;
  return httpErrorFor(error);
}

function sendError(
  request: Request,
  response: Response,
  { code, message, headers: itsOwn }: HttpError,
): void {
  const { status, body, retryAfter } = errorAnswer(code);
  const key = body === 'without key' ? undefined : keyOf(request);
  const headers = [...BROWSER_HEADERS, ...itsOwn];
  if (retryAfter !== undefined) headers.push('Retry-After', retryAfter);
  response.locals.errorCode = code;
  sendJson(
    response,
    status,
    key === undefined ? { error: message } : { error: message, key },
    headers,
  );
}

/** Names the first part of the path that can't be decoded. */
function answerBadEncoding(request: Request, response: Response): void {
  const [, resource, key] = request.path.split('/');
  if (resource === 'debug' && (request.method === 'GET' || request.method === 'HEAD')) {
    // The contract has 200 for every read of a key. No instance has a key that can't be written.
    sendJson(response, 200, { Key: key, Found: false }, BROWSER_HEADERS);
    return;
  }
  const part = keyOf(request) === key && key?.includes('%') ? 'key' : 'requestId';
  sendError(request, response, httpError('INVALID_ENCODING', { part }));
}

/** Whether Express's router could not decode a parameter. */
function isBadEncoding(error: unknown): boolean {
  return error instanceof URIError && 'status' in error && error.status === 400;
}
