import type { Socket } from 'node:net';

import { Client } from '../limiter/client.js';

/** The clients of the requests that wait on each connection; one listener for all of them. */
const clientsOf = new WeakMap<Socket, Set<Client>>();

/**
 * A client that leaves when its connection closes, if that is before `stopWatching`. The connection is
 * watched and not the response, since the response to a pipelined request has none before its turn.
 */
export function watchClient(socket: Socket): Client {
  const client = new Client();
  if (socket.destroyed) client.leave();
  const clients = clientsOf.get(socket) ?? watch(socket);
  clients.add(client);
  return client;
}

export function stopWatching(socket: Socket, client: Client): void {
  clientsOf.get(socket)?.delete(client);
}

function watch(socket: Socket): Set<Client> {
  const clients = new Set<Client>();
  clientsOf.set(socket, clients);
  socket.once('close', () => {
    for (const client of clients) client.leave();
  });
  return clients;
}
