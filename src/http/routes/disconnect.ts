import type { Socket } from 'node:net';

import { CallerPresence } from '../../limiter/caller-presence.js';

/** Longer than earlier answers need to go out; a connection is held up behind them, too. */
const HELD_UP_MILLIS = 100;

/** The clients of the requests that wait on each connection; one listener for all of them. */
const clientsOf = new WeakMap<Socket, Set<CallerPresence>>();

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
  const clients = clientsOf.get(socket) ?? watch(socket);
  clients.add(client);
  cutIfHeldUp(socket, clients);
  try {
    return await work(client);
  } finally {
    clients.delete(client);
  }
}

function watch(socket: Socket): Set<CallerPresence> {
  const clients = new Set<CallerPresence>();
  clientsOf.set(socket, clients);
  socket.on('pause', () => {
    cutIfHeldUp(socket, clients);
  });
  socket.once('close', () => {
    for (const client of clients) client.disconnect();
  });
  return clients;
}

/**
 * Cuts a connection that Node has stopped reading, as it does while many answers pile up behind that of a
 * request that waits. Such a connection does not tell that its client disconnects, and the place would stay
 * taken.
 */
function cutIfHeldUp(socket: Socket, clients: ReadonlySet<CallerPresence>): void {
  if (clients.size === 0 || !isHeldUp(socket)) return;
  setTimeout(() => {
    if (clients.size > 0 && isHeldUp(socket)) socket.destroy();
  }, HELD_UP_MILLIS).unref();
}

/** Whether Node holds the connection up. The flag is Node's own; other pauses do not set it. */
function isHeldUp(socket: Socket): boolean {
  return (socket as Socket & { _paused?: boolean })._paused === true;
}
