import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import type { Settings } from '../../../src/config/settings.js';
import { openApiDocument } from '../../../src/http/openapi/document.js';
import type { SentAnswer } from './answer-checker.js';
import { HeldPort, type Part } from './held-port.js';

/**
 * Compares all answers of the services in a test's process with their documents, whether or not the test reads them.
 * The test fails if an answer differs from its document.
 */

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
}

const ports = new Map<number, HeldPort>();
const flaws: string[] = [];

/** Compares the answers of a port with the document of its service. @returns a function that ends this */
export function holdToDocument(url: string, settings: Settings, part: Part = 'all'): () => void {
  const port = Number(new URL(url).port);
  ports.set(port, heldPortOf(settings, part));
  return () => ports.delete(port);
}

/** Shared by services with equal documents: to make a document takes longer than most tests. */
const known = new Map<string, HeldPort>();

function heldPortOf(settings: Settings, part: Part): HeldPort {
  const { RATE_LIMIT_HEADERS, AUTH_TOKENS_FILE, DEBUG_ENDPOINTS, PORT, ADMIN_PORT, TLS_CERT_FILE } =
    settings;
  const described = {
    ...{ RATE_LIMIT_HEADERS, DEBUG_ENDPOINTS, PORT, ADMIN_PORT },
    // A document shows whether there are tokens and TLS, but not their files.
    AUTH_TOKENS_FILE: AUTH_TOKENS_FILE && 'a file',
    TLS_CERT_FILE: TLS_CERT_FILE && 'a file',
  };
  const name = JSON.stringify([part, described]);
  const held = known.get(name) ?? new HeldPort(openApiDocument(described), part);
  known.set(name, held);
  return held;
}

subscribe('http.server.request.start', (message) => {
  const { request, response, socket } = message as Exchange;
  const held = ports.get(socket.localPort ?? 0);
  if (!held) return;
  const { method = '', url: target = '' } = request;
  const body = bodyOf(response);
  response.on('finish', () => {
    const answer: SentAnswer = {
      method,
      status: response.statusCode,
      headers: headersOf(response),
      body: body(),
    };
    const found = held.flawsOf(target, answer);
    if (found.length === 0) return;
    const { status, body: text } = answer;
    flaws.push(`${method} ${target}: ${status} ${text.slice(0, 200)} ${found.join(', ')}`);
  });
});

/** Copies the body that is written to a response. */
function bodyOf(response: ServerResponse): () => string {
  const chunks: Buffer[] = [];
  for (const name of ['write', 'end'] as const) {
    const send = response[name].bind(response) as (...args: unknown[]) => unknown;
    Object.assign(response, {
      [name]: (...args: unknown[]) => {
        const [chunk, encoding] = args;
        if (typeof chunk === 'string') chunks.push(Buffer.from(chunk, encoding as BufferEncoding));
        else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
        return send(...args);
      },
    });
  }
  return () => Buffer.concat(chunks).toString();
}

/** The headers as they were sent. Node keeps the headers of `writeHead` nowhere else. */
function headersOf(response: ServerResponse): ReadonlyMap<string, string> {
  const { _header: head } = response as ServerResponse & { _header: string };
  const lines = head.split('\r\n').slice(1).filter(Boolean);
  return new Map(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.replace(/^.*?: /, ''),
    ]),
  );
}

function expectNone(): void {
  if (flaws.length > 0) throw new Error(`not as documented:\n${flaws.splice(0).join('\n')}`);
}

afterEach(expectNone);
afterAll(expectNone);
