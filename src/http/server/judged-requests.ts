import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import type { Response } from 'express';

import type { ConnectionBounds } from '../../net/connection-bounds.js';
import type { JudgedConnection, UntrustedConnections } from '../../net/untrusted-connections.js';

/** What Node's parser is told at an upgrade: what it has read behind the head is no HTTP. */
const NO_HTTP = 2;

interface JudgedRequestsOptions extends Pick<ConnectionBounds, 'onDropped'> {
  /** Whether only requests with a token are accepted. Without tokens every answer but a rejection accepts one. */
  readonly needTokens: boolean;
}

export function countRequests(
  serve: RequestListener,
  connections: UntrustedConnections,
): RequestListener {
  return (request, response) => {
    connections.take(connections.of(request.socket));
    serve(request, response);
  };
}

/**
 * Judges each request that is served by its answer. After too many rejected requests, the next answer ends the connection,
 * and the requests behind it are dropped.
 */
export function judgeRequests(
  serve: RequestListener,
  connections: UntrustedConnections,
  { needTokens, onDropped }: JudgedRequestsOptions,
): RequestListener {
  const judge = (connection: JudgedConnection, response: ServerResponse): void => {
    const isRejected = isRejection(response);
    if (needTokens ? hasCaller(response) : !isRejected) connections.accept(connection);
    else if (isRejected) connections.reject(connection);
  };
  const ending = new WeakSet<JudgedConnection>();
  return (request, response) => {
    const connection = connections.of(request.socket);
    if (connection.isUnwanted) {
      if (ending.has(connection)) return;
      ending.add(connection);
      response.shouldKeepAlive = false;
      dropUnparsed(request.socket);
      onDropped('too_many_rejected');
    }
    serve(request, response);
    // A token is known before the answer.
    if (response.writableEnded || (needTokens && hasCaller(response))) {
      judge(connection, response);
    } else if (!connection.isTrusted) {
      response.once('finish', () => judge(connection, response));
    }
  };
}

/**
 * Makes Node's parser drop the requests that it has read behind this one. Each would cost more than its answer: Node makes
 * an error with a stack for each request that has none when its connection ends.
 */
function dropUnparsed(socket: Socket): void {
  const { parser } = socket as Socket & { readonly parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => NO_HTTP;
}

/** Whether a request was answered with a 4xx other than a denial. */
function isRejection({ statusCode }: ServerResponse): boolean {
  return statusCode >= 400 && statusCode < 500 && statusCode !== 429;
}

/** Whether a request had a token that is accepted. */
function hasCaller(response: ServerResponse): boolean {
  const { locals } = response as { readonly locals?: Partial<Response['locals']> };
  return locals?.context?.caller !== undefined;
}
