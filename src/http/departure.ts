import type { Socket } from 'node:net';

import { CallerPresence } from '../limiter/caller-presence.js';

/** Longer than the answers to earlier requests need to go out, behind which a connection is held up, too. */
const HELD_UP_MILLIS = 100;

/** The clients of the requests that wait on each connection; one listener for all of them. */
const clientsOf = new WeakMap<Socket, Set<CallerPresence>>();

/**
 * Runs `work` with a client that leaves when its connection closes. The connection is watched and not
 * the response, since the response to a pipelined request has none before its turn.
 */
export async function untilClientLeaves<T>(
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
 * Node stops reading a connection while many answers pile up on it, behind that of a request that waits.
 * Nobody would hear its client leave, and the place would stay taken: such a connection is cut.
 */
function cutIfHeldUp(socket: Socket, clients: ReadonlySet<CallerPresence>): void {
  if (clients.size === 0 || !isHeldUp(socket)) return;
  setTimeout(() => {
    if (clients.size > 0 && isHeldUp(socket)) socket.destroy();
  }, HELD_UP_MILLIS).unref();
}

/** The flag is Node's own; a connection that is paused for another reason does not have it. */
function isHeldUp(socket: Socket): boolean {
  return (socket as Socket & { _paused?: boolean })._paused === true;
}
