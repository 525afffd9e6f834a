import type { ErrorRequestHandler, Request, Response } from 'express';

import { UnavailableError } from '../../limiter/errors.js';
import { BROWSER_HEADERS, type Headers, RETRY_AFTER_503_MILLIS, retryAfter } from './headers.js';
import { HttpError } from './http-error.js';
import { keyOf } from './key-of.js';
import { sendJson } from './reply.js';
import { logAnswer } from './request-log.js';

/** Every error becomes a JSON body, and a fault of ours never looks like a refusal. */
export const errorHandler: ErrorRequestHandler = (error: unknown, request, response, _next) => {
  if (response.headersSent) {
    // A body that was cut short must not look whole.
    response.err = error as Error;
    logAnswer(response, 500);
    response.destroy();
  } else if (error instanceof HttpError) {
    sendError(response, error.status, error.message, error.key);
  } else if (error instanceof UnavailableError) {
    response.err = error;
    sendError(response, 503, error.message, keyOf(request), retryAfter(RETRY_AFTER_503_MILLIS));
  } else if (isBadEncoding(error)) {
    sendBadEncoding(request, response);
  } else {
    response.err = error as Error;
    sendError(response, 500, 'internal error', keyOf(request));
  }
};

function sendError(
  response: Response,
  status: number,
  message: string,
  key?: string,
  headers: Headers = [],
): void {
  const body = key === undefined ? { error: message } : { error: message, key };
  sendJson(response, status, body, [...BROWSER_HEADERS, ...headers]);
}

/** Names the first part of the path that can't be decoded. */
function sendBadEncoding(request: Request, response: Response): void {
  const [, resource, key] = request.path.split('/');
  if (resource === 'debug' && (request.method === 'GET' || request.method === 'HEAD')) {
    // Always 200, says the contract, and a key that can't be written has no instance.
    sendJson(response, 200, { Key: key, Found: false }, BROWSER_HEADERS);
    return;
  }
  const decodedKey = keyOf(request);
  const part = decodedKey === key && key?.includes('%') ? 'key' : 'requestId';
  sendError(response, 400, `${part} must be percent-encoded UTF-8`, decodedKey);
}

/** What Express's router throws for a parameter it can't decode. */
function isBadEncoding(error: unknown): boolean {
  return error instanceof URIError && 'status' in error && error.status === 400;
}
