import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2';
import { connect as openSocket } from 'node:net';

import { status as statuses } from '@grpc/grpc-js';

import { type Asked, METHOD } from './grpc-gateway.js';

export const METHOD_PATH = METHOD.path;

/** How a call of raw bytes ended. */
export interface RawEnd {
  /** The status of HTTP. */
  readonly status: number;
  /** The status of gRPC; undefined if the answer has none. */
  readonly code: string | undefined;
  readonly details: string | undefined;
}

interface RawOptions {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** Whether the call stays open without sending more. */
  readonly staysOpen?: boolean;
}

/** Calls on one connection whose bytes the test writes. */
export interface RawCalls {
  /** Ends the connection without any frame of HTTP/2. */
  vanish(): void;
  send(chunks: readonly Buffer[], options?: RawOptions): Promise<RawEnd>;
  ask(request: Asked, options?: RawOptions): Promise<RawEnd>;
}

/** Connections for the tests of one file, each of which ends with its test. */
export function useRawCalls(): (at: { readonly grpcPort: number }) => RawCalls {
  const sessions: ClientHttp2Session[] = [];
  afterEach(() => {
    for (const session of sessions.splice(0)) session.destroy();
  });
  return ({ grpcPort }) => {
    const socket = openSocket(grpcPort, '127.0.0.1');
    const session = connect(`http://127.0.0.1:${grpcPort}`, { createConnection: () => socket });
    // Each stream also reports the error.
    session.on('error', () => undefined);
    sessions.push(session);
    const send: RawCalls['send'] = (chunks, options) => sendOn(session, chunks, options);
    return {
      vanish: () => {
        socket.resetAndDestroy();
      },
      send,
      ask: (request, options) => send([requestFrame(request)], options),
    };
  };
}

/** A message in gRPC's framing: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
export function messageFrame(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

export function requestFrame(request: Asked): Buffer {
  return messageFrame(METHOD.requestSerialize({ domain: 'test', ...request }));
}

function sendOn(
  session: ClientHttp2Session,
  chunks: readonly Buffer[],
  { path = METHOD_PATH, method = 'POST', headers = {}, staysOpen = false }: RawOptions = {},
): Promise<RawEnd> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': method,
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    const answer: Record<string, unknown> = {};
    for (const event of ['response', 'trailers']) {
      stream.on(event, (headers: object) => void Object.assign(answer, headers));
    }
    stream.on('error', reject);
    stream.on('close', () => {
      const { 'grpc-status': code, 'grpc-message': message } = answer;
      resolve({
        status: Number(answer[':status']),
        code: code === undefined ? undefined : statuses[Number(code)],
        details: typeof message === 'string' ? decodeURI(message) : undefined,
      });
    });
    stream.resume();
    for (const chunk of chunks) stream.write(chunk);
    if (!staysOpen) stream.end();
  });
}
