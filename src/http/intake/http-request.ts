import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

import { CallerPresence } from '../../limiter/request.js';
import type { ErrorCode } from '../../service/errors.js';
import {
  type Caller,
  type ConnectedRequest,
  correlationIdOf,
  type RequestContext,
  type RequestHeaders,
} from '../../service/request-context.js';
import { hasDisconnected, isUnread } from './connection-state.js';

/** What the service knows of a request over HTTP. */
export class HttpRequest implements ConnectedRequest {
  readonly correlationId: string;
  readonly startedAt = performance.now();
  readonly headers: RequestHeaders;
  caller: Caller | undefined;
  span: RequestContext['span'];
  bulkSpan: RequestContext['bulkSpan'];
  readonly #socket: Socket;

  constructor({ headers, socket }: IncomingMessage) {
    this.correlationId = correlationIdOf(headers);
    this.headers = headers;
    this.#socket = socket;
  }

  get owner(): string {
    return this.caller?.name ?? this.#socket.remoteAddress ?? '';
  }

  /**
   * Runs `work` with a presence that ends when the connection closes. The connection is watched and not the response,
   * since the response to a pipelined request has no connection before earlier ones are sent.
   */
  async whilePresent<T>(work: (client: CallerPresence) => Promise<T>): Promise<T> {
    const socket = this.#socket;
    const client = new CallerPresence();
    if (hasDisconnected(socket)) client.disconnect();
    let clients = clientsOf.get(socket);
    if (!clients) {
      clients = new WaitingClients(socket);
      clientsOf.set(socket, clients);
    }
    clients.add(client);
    try {
      return await work(client);
    } finally {
      clients.delete(client);
    }
  }
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- how Express's types are extended
  namespace Express {
    /** What `response.locals` has of a request until its answer is out. */
    interface Locals {
      context: ConnectedRequest;
      /** Whether there are parameters in the body; undefined without a body that may have some. */
      hasBodyParameters?: Promise<boolean> | undefined;
      errorCode?: ErrorCode;
      /** How many bytes of its answer count as unsent. */
      unsentBytes?: number;
      /** The name of the limit that has denied the check, if its key has several. */
      limit?: string;
    }
  }
}

/** Longer than earlier answers take to go out. A connection is also unread until they are out. */
const UNREAD_MILLIS = 100;

/** The clients of the requests that wait on each connection; one listener for all of them. */
const clientsOf = new WeakMap<Socket, WaitingClients>();

/**
 * The clients of one connection. A connection that is not read while a request waits on it is cut: the service would
 * not see that its client disconnects, and the place would stay taken. A connection whose waiting requests are answered
 * one after the other is left alone: if its client is gone, writing the next answer closes it.
 */
class WaitingClients {
  /** In order of arrival. */
  readonly #clients = new Set<CallerPresence>();
  #isWatched = false;

  constructor(private readonly socket: Socket) {
    socket.on('pause', this.#watch);
    socket.once('close', () => {
      for (const client of this.#clients) client.disconnect();
    });
  }

  add(client: CallerPresence): void {
    this.#clients.add(client);
    if (isUnread(this.socket)) this.#watch();
  }

  delete(client: CallerPresence): void {
    this.#clients.delete(client);
  }

  readonly #watch = (): void => {
    const [longest] = this.#clients;
    if (this.#isWatched || longest === undefined || !isUnread(this.socket)) return;
    this.#isWatched = true;
    setTimeout(() => {
      // After a standstill of the process, due timers run before decisions that have arrived are read.
      setImmediate(() => {
        this.#isWatched = false;
        if (this.#clients.has(longest) && isUnread(this.socket)) this.socket.destroy();
        else this.#watch();
      });
    }, UNREAD_MILLIS).unref();
  };
}
