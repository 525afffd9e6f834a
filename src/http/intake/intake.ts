import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

import type { Request, Response } from 'express';

import { serviceError } from '../../service/errors.js';
import { HttpRequest } from './http-request.js';

/** More than any good request needs, and than the 8000 that RFC 9110, section 4.1, recommends to take. */
const MAX_URL_BYTES = 8192;
const SCHEME_AND_AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;
/** Some parsers drop the text after a `#`, or read `\` as `/`. Node's parser rejects control characters itself. */
const AMBIGUOUS = /[#\\]/;

/** Targets of requests whose bodies a route reads, and some that have no route. */
const READ_BODY = /\/rate(?:\?|$)/;
/** Targets of checks, and some of other requests. */
const OF_CHECK = '/rate/';

/** The last request with a body on each connection. */
const lastWithBody = new WeakMap<Duplex, IncomingMessage>();

/**
 * Cuts scheme and authority off a target in absolute form, which proxies send. This has to happen before Express gets
 * the request: its router uses Node's URL parser, which fails for some authorities.
 * https://www.rfc-editor.org/rfc/rfc9112#name-absolute-form
 */
export function toOriginForm(request: IncomingMessage): void {
  const target = request.url ?? '/';
  if (target.startsWith('/')) return;
  const path = target.replace(SCHEME_AND_AUTHORITY, '');
  request.url = path.startsWith('/') || path === '*' ? path : `/${path}`;
}

/**
 * Takes a request in: makes its context, discards its body unless it is read in the same tick, and rejects URLs and
 * headers that no valid request has.
 * @throws ServiceError URL_TOO_LONG, INVALID_TARGET, HOST_MISSING or HOST_REPEATED
 */
export function takeIn(request: Request, response: Response): void {
  response.locals.context = new HttpRequest(request);
  if (hasBody(request)) response.locals.hasBodyParameters = discardBody(request);
  checkUrl(request);
  checkHost(request);
}

/** Whether the body of a request is still to come on this connection. */
export function isReceivingBody(socket: Duplex): boolean {
  return lastWithBody.get(socket)?.complete === false;
}

/**
 * Reads the body of a request, and discards it if nothing listens to it by the end of this tick. Without reading, the
 * service would not see that a client disconnects, and a request that has not arrived in full would time out.
 * @returns whether there are parameters in the body; undefined if its request can not have them there
 */
export function discardBody(request: IncomingMessage): Promise<boolean> | undefined {
  if (!hasBody(request)) return undefined;
  lastWithBody.set(request.socket, request);
  const type = request.headers['content-type'] ?? '';
  if (request.url?.includes(OF_CHECK) === true && OF_PARAMETERS.test(type)) {
    return hasParameters(request);
  }
  request.resume();
  return undefined;
}

/** Whether a request has a body that a route reads, which must not be read before the request is served. */
export function keepsBody(request: IncomingMessage): boolean {
  return hasBody(request) && READ_BODY.test(request.url ?? '');
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'] ?? '0';
  return length !== '0' || headers['transfer-encoding'] !== undefined;
}

function checkUrl(request: Request): void {
  const bytes = request.url.length;
  if (bytes > MAX_URL_BYTES) throw serviceError('URL_TOO_LONG', { max: MAX_URL_BYTES, bytes });
  if (!AMBIGUOUS.test(request.url)) return;
  const [character, encoded] = request.url.includes('#') ? ['#', '%23'] : ['\\', '%5C'];
  throw serviceError('INVALID_TARGET', { character, encoded });
}

/** HTTP/1.1 has exactly one Host header: https://www.rfc-editor.org/rfc/rfc9112#section-3.2-6 */
function checkHost(request: Request): void {
  const hosts = countHostHeaders(request.rawHeaders);
  if (hosts > 1) throw serviceError('HOST_REPEATED', {});
  if (hosts === 0 && request.httpVersion === '1.1') throw serviceError('HOST_MISSING', {});
}

/** @param rawHeaders alternately a name and its value. Node's `headers` has one Host header, however many were sent. */
function countHostHeaders(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** As much is read of a body. One that is larger is not empty. */
const MAX_BYTES = 4096;

/** The types of bodies in which clients send parameters. */
const OF_PARAMETERS =
  /^(application\/json|application\/x-www-form-urlencoded|multipart\/form-data) *(?:;|$)/i;
/** Bodies without a parameter, as clients send them that have none, without white space. */
const EMPTY: readonly string[] = ['', '{}', '[]', 'null'];

/** The requests whose bodies are read, and whether there are parameters in them. */
const found = new WeakMap<IncomingMessage, Promise<boolean>>();

/**
 * Whether there are parameters in the body of a request. Reads the body, of which it keeps little, the first time that it
 * is called. Never resolves if the client disconnects before the end.
 */
function hasParameters(request: IncomingMessage): Promise<boolean> {
  const known = found.get(request);
  if (known) return known;
  const answer = new Promise<boolean>((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_BYTES) {
        // A copy: a small piece would keep all that was read with it in memory.
        chunks.push(Buffer.from(chunk));
        return;
      }
      chunks.length = 0;
      resolve(true);
    });
    request.once('end', () => {
      const text = Buffer.concat(chunks).toString().replace(/\s+/g, '');
      resolve(bytes > MAX_BYTES || !EMPTY.includes(text));
    });
  });
  found.set(request, answer);
  return answer;
}
