import type { Application, Response } from 'express';

import { logAnswer } from './request-log.js';
import { unsentOf } from './unsent-answers.js';

/** Alternately a name and its value. */
export type Headers = readonly (string | number)[];

export const CORRELATION_HEADER = 'X-Correlation-ID';

/** Headers of answers that a browser may show. The browser does not cache them, load anything for them, or frame them. */
export const BROWSER_HEADERS: Headers = [
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];

export const JSON_TYPE = 'application/json';
export const PLAIN_TEXT = 'text/plain; charset=utf-8';

/** A longer answer counts as unsent until its connection has taken it. */
const SMALL_BYTES = 4 * 1024;
/** How much of an answer a connection gets at a time. */
const PART_BYTES = 64 * 1024;

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

export function send(
  response: Response,
  status: number,
  contentType: string,
  text: string,
  headers: Headers = [],
): void {
  const bytes = Buffer.byteLength(text);
  writeHead(response, status, contentType, headers, bytes);
  if (bytes > PART_BYTES) {
    void endWithText(response, Buffer.from(text));
    return;
  }
  // Node writes the head in the encoding of a text body. A head is always Latin-1, so that another encoding would
  // change an echoed header. Head and body leave as one text: on a pipelined connection an interim answer could come
  // between two writes.
  const isAscii = bytes === text.length;
  response.end(isAscii ? text : Buffer.from(text).toString('latin1'), 'latin1');
  // Node gives a response no connection before the answers to earlier requests are sent.
  if (response.socket === null) unsentOf(response).addWhole(response, response.writableLength);
  else if (bytes > SMALL_BYTES) unsentOf(response).addWhole(response, bytes);
}

/** Answers with bytes that all answers share, and which take memory for each client only while they are sent. */
export async function sendShared(
  response: Response,
  contentType: string,
  content: Buffer,
  headers: Headers,
): Promise<void> {
  writeHead(response, 200, contentType, headers, content.length);
  await endWith(response, content);
}

/** Counts a text that only this answer has, until it is sent. */
async function endWithText(response: Response, text: Buffer): Promise<void> {
  const { socket } = response.req;
  unsentOf(response).add(socket, text.length);
  await endWith(response, text);
  unsentOf(response).sent(socket, text.length);
}

async function endWith(response: Response, content: Buffer): Promise<void> {
  for (let start = 0; start < content.length; start += PART_BYTES) {
    if (!(await writePart(response, content.subarray(start, start + PART_BYTES)))) return;
  }
  response.end();
}

/**
 * Writes a part of an answer, and waits until the connection has sent it.
 * @returns false if the connection has ended before
 */
export async function writePart(response: Response, part: Buffer): Promise<boolean> {
  const { socket } = response.req;
  const unsent = unsentOf(response);
  unsent.add(socket, part.length);
  if (socket.destroyed) return false;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      socket.off('close', end);
      resolve();
    };
    // A response that waits for earlier ones on its connection gets no event when the connection closes.
    socket.once('close', end);
    response.write(part, end);
  });
  unsent.sent(socket, part.length);
  return !socket.destroyed;
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
