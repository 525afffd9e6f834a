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
  response.setHeader('Content-Length', Buffer.byteLength(text));
  if (isDraining(response.app)) response.setHeader('Connection', 'close');
  response.end(text);
}

/** Whole seconds, rounded up, at least 1: RFC 9110, section 10.2.3. */
export function setRetryAfter(response: ServerResponse, millis: number): void {
  response.setHeader('Retry-After', Math.max(1, Math.ceil(millis / 1000)));
}
