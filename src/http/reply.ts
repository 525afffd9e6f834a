import type { ServerResponse } from 'node:http';

import type { Response } from 'express';

import { isDraining } from './drain.js';

/**
 * Answers with JSON. Express's own `res.json` would add a charset to the content type, and an ETag
 * by which a cache could take one approval for another.
 */
export function sendJson(response: Response, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json');
  const bytes = Buffer.byteLength(text);
  response.setHeader('Content-Length', bytes);
  if (isDraining(response.app)) response.setHeader('Connection', 'close');
  // Node writes the head in the encoding of a body that is text, but a head is Latin-1 always: an
  // echoed header would not come back as it was.
  if (bytes === text.length) response.end(text, 'latin1');
  else response.end(Buffer.from(text));
}

/** Whole seconds, rounded up, at least 1: RFC 9110, section 10.2.3. */
export function setRetryAfter(response: ServerResponse, millis: number): void {
  response.setHeader('Retry-After', Math.max(1, Math.ceil(millis / 1000)));
}
