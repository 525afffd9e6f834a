import type { Request } from 'express';

import { keyOf } from './error-handler.js';
import { HttpError } from './http-error.js';
import { discardBody } from './request-body.js';

/** More than anything good needs, and than the 8000 that RFC 9110, section 4.1, recommends to take. */
const MAX_URL_BYTES = 8192;

/**
 * Refuses what no request needs, and sees to it that no body is kept.
 * @throws HttpError 414 or 400
 */
export function boundRequest(request: Request): void {
  discardBody(request);
  const bytes = request.url.length;
  if (bytes > MAX_URL_BYTES) {
    const message = `the URL must be at most ${MAX_URL_BYTES} bytes, not ${bytes}`;
    throw new HttpError(414, message, keyOf(request));
  }
  // https://www.rfc-editor.org/rfc/rfc9112#section-3.2-6
  const hosts = hostHeaders(request.rawHeaders);
  if (hosts > 1) throw new HttpError(400, 'the Host header must be given once', keyOf(request));
  if (hosts === 0 && request.httpVersion === '1.1') {
    throw new HttpError(400, 'the Host header must be given', keyOf(request));
  }
}

/** @param rawHeaders names and values in turn; `headers` has but one Host, however many were sent */
function hostHeaders(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}
