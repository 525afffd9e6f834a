import { newUuid } from '../../common/uuid.js';
import { type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

import type { Logger } from 'pino';

import { isReceivingBody } from '../intake/intake.js';
import { firstPendingResponse, isUnread } from '../intake/connection-state.js';
import { ERRORS } from '../../service/errors.js';
import { BROWSER_HEADERS, CORRELATION_HEADER, type Headers } from '../replies/reply.js';
import { levelOf, type LoggedStatuses } from '../../service/request-context.js';

type TransportError = 'REQUEST_TIMEOUT' | 'HEADERS_TOO_LARGE' | 'MALFORMED_REQUEST';

/** A request that could not be read, and how it was answered. */
export interface UnreadableRequest {
  readonly correlationId: string;
  readonly status: number;
  readonly errorCode: TransportError;
  /** Node's code for what is wrong with it. */
  readonly code: string;
}

/**
 * Answers input that never becomes a request: text that is not HTTP, headers that are too large, a request that does
 * not arrive in time. The connection ends with the answer.
 * @param isStopped whether a connection waits for its turn to be read
 */
export function answerUnreadable(
  server: Server,
  isStopped: (socket: Duplex) => boolean,
  onAnswer: (request: UnreadableRequest) => void,
): void {
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
    const errorCode = errorCodeFor(code);
    // The request is not late: the service does not read the rest of it.
    if (errorCode === 'REQUEST_TIMEOUT' && (isUnread(socket) || isStopped(socket))) return;
    if (errorCode === undefined || !isAnswerable(socket)) {
      socket.destroy();
      return;
    }
    const correlationId = newUuid();
    const status = ERRORS[errorCode].status;
    socket.end(answerText(status, errorCode, correlationId), () => socket.destroy());
    onAnswer({ correlationId, status, errorCode, code });
  });
}

/** Logs each answer to an unreadable request, one line each, if the settings ask for it. */
export function logUnreadable(
  logger: Logger,
  statuses: LoggedStatuses,
): (request: UnreadableRequest) => void {
  return (request) => {
    const level = levelOf(request.status, statuses);
    if (level !== 'silent') logger[level](request, 'unreadable request answered');
  };
}

/** @returns undefined if no request was begun, such as on a connection that is reset or does not speak TLS */
function errorCodeFor(code: string): TransportError | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'REQUEST_TIMEOUT';
  if (code === 'HPE_HEADER_OVERFLOW') return 'HEADERS_TOO_LARGE';
  return code.startsWith('HPE_') ? 'MALFORMED_REQUEST' : undefined;
}

/** Whether the client would take an answer sent now for the answer to the request that failed. */
function isAnswerable(socket: Duplex): boolean {
  if (!socket.writable) return false;
  const pending = firstPendingResponse(socket);
  // The bytes that failed may be the rest of a request that was answered.
  if (!pending) return !isReceivingBody(socket);
  return !pending.req.complete && !pending.headersSent;
}

function answerText(status: number, code: TransportError, correlationId: string): string {
  const body = JSON.stringify({ error: ERRORS[code].message, code });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `${CORRELATION_HEADER}: ${correlationId}`,
    'X-Content-Type-Options: nosniff',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
    ...linesOf(BROWSER_HEADERS),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

function linesOf(headers: Headers): string[] {
  const lines: string[] = [];
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return lines;
}
