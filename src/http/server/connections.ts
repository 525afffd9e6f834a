import type { Server as HttpServer } from 'node:http';
import type { Server, Socket } from 'node:net';

const IDLE_SWEEP_MILLIS = 20;

/** All connections of `server`. Those that have not agreed on TLS yet are among them, unlike for `closeAllConnections`. */
export function connectionsOf(server: Server): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  return connections;
}

/** Has `server` take no new connection. Resolves when the last has ended. */
export async function stopAccepting(server: HttpServer): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  // server.close() ends the connections that are idle now. Others become idle later.
  const sweep = setInterval(() => {
    server.closeIdleConnections();
  }, IDLE_SWEEP_MILLIS);
  await closed;
  clearInterval(sweep);
}
