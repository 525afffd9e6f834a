import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';

import express, { type Request, type RequestHandler, type Response } from 'express';

import { httpError } from '../replies/http-error.js';
import type { BodyRoom } from './body-room.js';
import { MAX_ELEMENTS } from './bulk-schemas.js';

/** More than as many elements as there may be need, with the longest keys, and overrides. */
const MAX_BODY_BYTES = 1024 * 1024;
const JSON_TYPE = /^application\/json *(?:;|$)/i;

const readRaw: RequestHandler = express.raw({
  type: () => true,
  limit: MAX_BODY_BYTES,
  inflate: false,
});

/**
 * Reads the JSON array in the body of a request that was taken in in the same tick, and hands it to `work`, unless the
 * client disconnects before its end.
 * @throws HttpError UNSUPPORTED_BODY, BODY_TOO_LARGE, NO_ROOM_FOR_BODY or INVALID_BODY
 */
export async function withJsonArray(
  request: Request,
  response: Response,
  room: BodyRoom,
  work: (elements: readonly unknown[]) => Promise<void>,
): Promise<void> {
  const { headers } = request;
  refuseOtherTypes(headers);
  // A body in chunks does not tell its length before its end.
  const bytes = Number(headers['content-length'] ?? MAX_BODY_BYTES);
  if (bytes > MAX_BODY_BYTES) throw tooLarge();
  await room.hold(bytes, async () => {
    const body = await readBody(request, response);
    if (body) await work(parseArray(body));
  });
}

function refuseOtherTypes(headers: IncomingHttpHeaders): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (!JSON_TYPE.test(type)) throw unsupported('Content-Type', 'application/json');
  // A small body may inflate to a large one.
  if (encoding.toLowerCase() !== 'identity') throw unsupported('Content-Encoding', 'identity');
}

/** @returns undefined where the client disconnected before the body's end */
async function readBody(request: Request, response: Response): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    readRaw(request, response, (error?: unknown) => {
      const { type } = (error ?? {}) as { type?: string };
      if (error === undefined) resolve((request.body as Buffer | undefined) ?? Buffer.alloc(0));
      else if (type === 'request.aborted') resolve(undefined);
      else reject(type === 'entity.too.large' ? tooLarge() : (error as Error));
    });
  });
}

function parseArray(body: Buffer): readonly unknown[] {
  const array = parseJson(body);
  if (!Array.isArray(array)) throw invalid('a JSON array');
  const { length } = array;
  if (length > MAX_ELEMENTS) throw invalid(`an array of at most ${MAX_ELEMENTS}, not ${length}`);
  return array;
}

function parseJson(body: Buffer): unknown {
  // What is no UTF-8 would become other text, and perhaps another's key.
  if (!isUtf8(body)) throw invalid('JSON in UTF-8');
  try {
    return JSON.parse(body.toString());
  } catch {
    throw invalid('a JSON array');
  }
}

function invalid(what: string): Error {
  return httpError('INVALID_BODY', { what });
}

function unsupported(header: string, value: string): Error {
  return httpError('UNSUPPORTED_BODY', { header, value });
}

function tooLarge(): Error {
  return httpError('BODY_TOO_LARGE', { max: MAX_BODY_BYTES });
}
