import type { Application, Response } from 'express';

import { CORRELATION_HEADER, type Headers } from './headers.js';
import { logAnswer } from './request-log.js';

export const JSON_TYPE = 'application/json';
export const PLAIN_TEXT = 'text/plain; charset=utf-8';

/** Makes every answer from now on ask its client to use another connection for the next request. */
export function startDraining(app: Application): void {
  app.locals.isDraining = true;
}

/**
 * Answers with JSON. Express's own `res.json` would add a charset to the content type, and an ETag by which a cache
 * could confuse two approvals.
 */
export function sendJson(
  response: Response,
  status: number,
  body: object,
  headers: Headers = [],
): void {
  send(response, status, JSON_TYPE, JSON.stringify(body), headers);
}

/** Answers with a complete text. */
export function send(
  response: Response,
  status: number,
  contentType: string,
  text: string,
  headers: Headers = [],
): void {
  const bytes = Buffer.byteLength(text);
  writeHead(response, status, contentType, headers, bytes);
  // Node writes the head in the encoding of a text body. A head is always Latin-1, so that another encoding would
  // change an echoed header. Head and body leave as one text: on a pipelined connection an interim answer could come
  // between two writes.
  const isAscii = bytes === text.length;
  response.end(isAscii ? text : Buffer.from(text).toString('latin1'), 'latin1');
}

/**
 * Writes the head of an answer in one call. Node copies headers that are set one by one into a map and
 * reads them back, which costs a tenth of the decisions per second.
 */
export function writeHead(
  response: Response,
  status: number,
  contentType: string,
  headers: Headers = [],
  contentLength?: number,
): void {
  const { correlationId } = response.locals.context;
  const head: (string | number)[] = [
    CORRELATION_HEADER,
    correlationId,
    'X-Content-Type-Options',
    'nosniff',
    'Content-Type',
    contentType,
  ];
  if (contentLength !== undefined) head.push('Content-Length', contentLength);
  for (const part of headers) head.push(part);
  if (response.app.locals.isDraining === true) head.push('Connection', 'close');
  logAnswer(response, status);
  response.writeHead(status, head as string[]);
}
