import type { Socket } from 'node:net';

import { Client } from '../limiter/client.js';

/** The clients of the requests that wait on each connection; one listener for all of them. */
const clientsOf = new WeakMap<Socket, Set<Client>>();

/**
 * Runs `work` with a client that leaves when its connection closes. The connection is watched and not
 * the response, since the response to a pipelined request has none before its turn.
 */
export async function untilClientLeaves<T>(
  socket: Socket,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client();
  if (socket.destroyed) client.leave();
  const clients = clientsOf.get(socket) ?? watch(socket);
  clients.add(client);
  try {
    return await work(client);
  } finally {
    clients.delete(client);
  }
}

function watch(socket: Socket): Set<Client> {
  const clients = new Set<Client>();
  clientsOf.set(socket, clients);
  socket.once('close', () => {
    for (const client of clients) client.leave();
  });
  return clients;
}
