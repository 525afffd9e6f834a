import type { Socket } from 'node:net';

import { CallerPresence } from '../../limiter/caller-presence.js';
import { hasDisconnected, isUnread } from './connection-state.js';

/** Longer than earlier answers take to go out. A connection is also unread until they are out. */
const UNREAD_MILLIS = 100;

/** The clients of the requests that wait on each connection; one listener for all of them. */
const clientsOf = new WeakMap<Socket, WaitingClients>();

/**
 * Runs `work` with a presence that ends when the connection closes. The connection is watched and not the response,
 * since the response to a pipelined request has no connection before earlier ones are sent.
 */
export async function untilDisconnect<T>(
  socket: Socket,
  work: (client: CallerPresence) => Promise<T>,
): Promise<T> {
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
