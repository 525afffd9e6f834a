import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';

import type { Request, Response } from 'express';

import { serviceError } from '../../service/service-error.js';
import { BodyBuffer, MAX_BODY_BYTES, tooLarge } from './body-buffer.js';
import type { BodyPlace, BodyRoom } from './body-room.js';
import { MAX_ELEMENTS } from '../../api/bulk-schemas.js';

const JSON_TYPE = /^application\/json *(?:;|$)/i;

/** The memory that an element takes besides its text, until its bulk request ends. */
export const BYTES_OF_ELEMENT = 128;
/** More fields than any valid element has. */
const MAX_FIELDS = 8;

/**
 * Reads the JSON array in the body of a request that was taken in during the same tick, and passes it to `work`, unless
 * the client disconnects before the end of the body.
 * @throws ServiceError UNSUPPORTED_BODY, BODY_TOO_LARGE, NO_ROOM_FOR_BODY or INVALID_BODY
 */
export async function withJsonArray(
  request: Request,
  response: Response,
  room: BodyRoom,
  work: (elements: readonly unknown[]) => Promise<void>,
): Promise<void> {
  const { headers, socket } = request;
  rejectOtherTypes(headers);
  // The length of a chunked body is known only at its end.
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

function rejectOtherTypes(headers: IncomingHttpHeaders): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (!JSON_TYPE.test(type)) throw unsupported('Content-Type', 'application/json');
  // A small compressed body may expand to a large one.
  if (encoding.toLowerCase() !== 'identity') throw unsupported('Content-Encoding', 'identity');
}

/**
 * Reads a body. A body that is rejected is still read to its end, and discarded: its client may not read an answer
 * before it has sent everything.
 * @returns undefined if the client disconnected before the body's end
 */
async function readBody(
  request: Request,
  announced: number,
  place: BodyPlace,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    let body: BodyBuffer | undefined = new BodyBuffer(place, announced);
    let rejection: Error | undefined;
    request.on('data', (chunk: Buffer) => {
      try {
        body?.append(chunk);
      } catch (error) {
        rejection = error as Error;
        body = undefined;
        place.leave();
      }
    });
    request.once('end', () => {
      if (rejection) reject(rejection);
      else resolve(body?.bytes);
    });
    // No effect after the end of the body.
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
 * An element without nested values and excess fields, which no valid element has: they would take twenty times their
 * bytes of the body in memory. The rest is rejected for the same reason as the element.
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
  // Bytes that are not UTF-8 would become other text, and perhaps the key of another caller.
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
