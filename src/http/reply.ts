import type { Response } from 'express';

import { CORRELATION_HEADER } from './correlation.js';
import { isDraining } from './drain.js';
import { logAnswer } from './request-log.js';

/** Names and values in turn. */
export type Headers = readonly (string | number)[];

/** For what may be opened in a browser: it is not kept, loads nothing, and stands in no other page. */
export const BROWSER_HEADERS: Headers = [
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];

/**
 * Answers with JSON. Express's own `res.json` would add a charset to the content type, and an ETag
 * by which a cache could take one approval for another.
 */
export function sendJson(
  response: Response,
  status: number,
  body: object,
  headers: Headers = [],
): void {
  send(response, status, 'application/json', JSON.stringify(body), headers);
}

/** Answers with a text, whole. */
export function send(
  response: Response,
  status: number,
  contentType: string,
  text: string,
  headers: Headers = [],
): void {
  const bytes = Buffer.byteLength(text);
  writeHead(response, status, contentType, ['Content-Length', bytes, ...headers]);
  // Node writes the head in the encoding of a body that is text, but a head is Latin-1 always: an
  // echoed header would not come back as it was.
  // Head and body are one text, or an interim answer could get between them on a pipelined connection.
  const isAscii = bytes === text.length;
  response.end(isAscii ? text : Buffer.from(text).toString('latin1'), 'latin1');
}

/**
 * The head of an answer, in one call. Node copies headers that are set one by one into a map and reads
 * them back; without that there are a tenth more decisions a second.
 */
export function writeHead(
  response: Response,
  status: number,
  contentType: string,
  headers: Headers = [],
): void {
  const { correlationId } = response.locals;
  const head = [
    CORRELATION_HEADER,
    correlationId,
    'X-Content-Type-Options',
    'nosniff',
    'Content-Type',
    contentType,
    ...headers,
  ];
  if (isDraining(response.app)) head.push('Connection', 'close');
  logAnswer(response, status);
  response.writeHead(status, head as string[]);
}

/** When to come back after a 503; how long what is wrong lasts nobody knows. */
export const RETRY_AFTER_503_MILLIS = 1000;

/** Whole seconds, rounded up, at least 1: RFC 9110, section 10.2.3. */
export function retryAfter(millis: number): Headers {
  return ['Retry-After', Math.max(1, Math.ceil(millis / 1000))];
}
