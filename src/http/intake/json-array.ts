import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';

import type { Request, Response } from 'express';

import { serviceError } from '../../service/service-error.js';
import { BodyBuffer, MAX_BODY_BYTES, tooLarge } from './body-buffer.js';
import type { BodyPlace, BodyRoom } from './body-room.js';
import { MAX_ELEMENTS } from '../../api/bulk-schemas.js';

const JSON_TYPE = /^application\/json *(?:;|$)/i;

/** What an element takes in memory besides its text, until its call ends. */
export const BYTES_OF_ELEMENT = 128;
/** More than any element has. */
const MAX_FIELDS = 8;

/**
 * Reads the JSON array in the body of a request that was taken in in the same tick, and hands it to `work`, unless the
 * client disconnects before its end.
 * @throws ServiceError UNSUPPORTED_BODY, BODY_TOO_LARGE, NO_ROOM_FOR_BODY or INVALID_BODY
 */
export async function withJsonArray(
  request: Request,
  response: Response,
  room: BodyRoom,
  work: (elements: readonly unknown[]) => Promise<void>,
): Promise<void> {
  const { headers, socket } = request;
  refuseOtherTypes(headers);
  // A body in chunks does not tell its length before its end.
  const announced = Number(headers['content-length'] ?? MAX_BODY_BYTES);
  if (announced > MAX_BODY_BYTES) throw tooLarge();
  const caller = response.locals.context.caller?.name ?? socket.remoteAddress ?? '';
  const place = room.enter({ caller, connection: socket });
  try {
    const body = await readBody(request, announced, place);
    if (!body) return;
    const elements = parseArray(body);
    place.take(elements.length * BYTES_OF_ELEMENT);
    await work(elements);
  } finally {
    place.leave();
  }
}

function refuseOtherTypes(headers: IncomingHttpHeaders): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (!JSON_TYPE.test(type)) throw unsupported('Content-Type', 'application/json');
  // A small body may inflate to a large one.
  if (encoding.toLowerCase() !== 'identity') throw unsupported('Content-Encoding', 'identity');
}

/**
 * Reads a body. One that is refused is read to its end all the same, and forgotten: its client may not read an answer
 * before it has sent all.
 * @returns undefined if the client disconnected before the body's end
 */
async function readBody(
  request: Request,
  announced: number,
  place: BodyPlace,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    let body: BodyBuffer | undefined = new BodyBuffer(place, announced);
    let refusal: Error | undefined;
    request.on('data', (chunk: Buffer) => {
      try {
        body?.append(chunk);
      } catch (error) {
        refusal = error as Error;
        body = undefined;
        place.leave();
      }
    });
    request.once('end', () => {
      if (refusal) reject(refusal);
      else resolve(body?.bytes);
    });
    // After an end this changes nothing.
    request.once('close', () => {
      resolve(undefined);
    });
  });
}

function parseArray(body: Buffer): readonly unknown[] {
  const array = parseJson(body);
  if (!Array.isArray(array)) throw invalid('a JSON array');
  const { length } = array;
  if (length > MAX_ELEMENTS) throw invalid(`an array of at most ${MAX_ELEMENTS}, not ${length}`);
  return array.map(flat);
}

/**
 * An element without what no element has: values in values, and many fields, would take twenty times their bytes of the
 * body. What is left is refused as the element would be.
 */
function flat(element: unknown): unknown {
  if (typeof element !== 'object' || element === null) return element;
  if (Array.isArray(element)) return null;
  const fields = element as Record<string, unknown>;
  let count = 0;
  for (const name in fields) {
    count += 1;
    if (count > MAX_FIELDS || isNested(fields[name])) return flattened(fields);
  }
  return element;
}

function flattened(fields: Readonly<Record<string, unknown>>): object {
  const first = Object.entries(fields).slice(0, MAX_FIELDS);
  return Object.fromEntries(first.map(([name, value]) => [name, isNested(value) ? null : value]));
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
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
  return serviceError('INVALID_BODY', { what });
}

function unsupported(header: string, value: string): Error {
  return serviceError('UNSUPPORTED_BODY', { header, value });
}
