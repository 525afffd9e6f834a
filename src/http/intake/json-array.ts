import { isUtf8 } from 'node:buffer';

import express, { type Request, type RequestHandler, type Response } from 'express';

import { httpError } from '../replies/http-error.js';
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
 * Reads the JSON array in the body of a request that was taken in in the same tick.
 * @returns undefined where the client disconnected before its end
 * @throws HttpError UNSUPPORTED_BODY, BODY_TOO_LARGE or INVALID_BODY
 */
export async function readJsonArray(
  request: Request,
  response: Response,
): Promise<readonly unknown[] | undefined> {
  refuseUnread(request);
  const body = await readBody(request, response);
  return body && parseArray(body);
}

/** Refuses what its headers say enough of. Its body is not kept then. */
function refuseUnread({ headers }: Request): void {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = headers;
  const isJson = type !== undefined && JSON_TYPE.test(type);
  if (!isJson)
    throw httpError('UNSUPPORTED_BODY', { header: 'Content-Type', value: 'application/json' });
  // A small body may inflate to a large one.
  if (encoding.toLowerCase() !== 'identity') {
    throw httpError('UNSUPPORTED_BODY', { header: 'Content-Encoding', value: 'identity' });
  }
  if (Number(headers['content-length']) > MAX_BODY_BYTES) throw tooLarge();
}

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

function tooLarge(): Error {
  return httpError('BODY_TOO_LARGE', { max: MAX_BODY_BYTES });
}
