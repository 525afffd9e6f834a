import type { RequestHandler } from 'express';

import { keyOf } from './error-handler.js';
import { HttpError } from './http-error.js';
import { discardBody } from './request-body.js';

/** More than anything good needs, and than the 8000 that RFC 9110, section 4.1, recommends to take. */
const MAX_URL_BYTES = 8192;

/** Refuses what no request needs, and sees to it that no body is kept. */
export const boundRequest: RequestHandler = (request, _response, next) => {
  discardBody(request);
  const bytes = request.url.length;
  if (bytes > MAX_URL_BYTES) {
    const message = `the URL must be at most ${MAX_URL_BYTES} bytes, not ${bytes}`;
    throw new HttpError(414, message, keyOf(request));
  }
  if (request.headers.host === undefined && request.httpVersion === '1.1') {
    throw new HttpError(400, 'the Host header must be given', keyOf(request));
  }
  next();
};
