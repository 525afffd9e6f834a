import type { Socket } from 'node:net';

import { CallerPresence } from '../../limiter/caller-presence.js';
import { isHeldUp } from './connection-state.js';

/** Longer than earlier answers need to go out; a connection is held up behind them, too. */
const HELD_UP_MILLIS = 100;

/** The clients of the requests that wait on each connection; one listener for all of them. */
const clientsOf = new WeakMap<Socket, WaitingClients>();

/**
 * Runs `work` with a client that hears when its connection closes. The connection is watched and not
 * the response, since the response to a pipelined request has none before its turn.
 */
export async function untilDisconnect<T>(
  socket: Socket,
  work: (client: CallerPresence) => Promise<T>,
): Promise<T> {
  const client = new CallerPresence();
  if (socket.destroyed) client.disconnect();
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
 * The clients of one connection. It is cut when it is not read while a request waits on it: it does not tell
 * then that its client disconnects, and the place would stay taken. A connection on which the requests
 * that wait are answered one after the other is left alone, since an answer to nobody ends it.
 */
class WaitingClients {
  /** The longest-waiting one first. */
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
    if (isHeldUp(this.socket)) this.#watch();
  }

  delete(client: CallerPresence): void {
    this.#clients.delete(client);
  }

  readonly #watch = (): void => {
    const [longest] = this.#clients;
    if (this.#isWatched || longest === undefined || !isHeldUp(this.socket)) return;
    this.#isWatched = true;
    setTimeout(() => {
      // In a process that stood still, decisions that have come are read after timers that are due.
      setImmediate(() => {
        this.#isWatched = false;
        if (this.#clients.has(longest) && isHeldUp(this.socket)) this.socket.destroy();
        else this.#watch();
      });
    }, HELD_UP_MILLIS).unref();
  };
}
