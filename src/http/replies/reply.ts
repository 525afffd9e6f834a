import type { Response } from 'express';

import { isDraining } from './draining.js';
import { CORRELATION_HEADER, type Headers } from './headers.js';
import { logAnswer } from './request-log.js';

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
