import type { AddressInfo, Server, Socket } from 'node:net';

import type { ConnectionBounds } from './connection-bounds.js';

/** Where a server listens, and the bounds of its connections. */
export interface ListeningOptions {
  /** 0 for any free port */
  readonly port: number;
  readonly host: string;
  readonly bounds: Pick<ConnectionBounds, 'maxConnections' | 'onDropped'>;
}

/** A server that listens. */
export interface Listening {
  readonly port: number;
  /** Ends all connections, including those with a request that is partly sent. */
  cutConnections(): void;
}

/** A server that listens, and how to end it without cutting an answer off. */
export interface StoppableServer extends Listening {
  /** Takes no new connection from now on. Resolves when the last has ended. */
  stopAccepting(): Promise<void>;
}

/**
 * Makes a server listen, with bounds for its connections.
 * @throws the error of listen(2), such as EADDRINUSE
 */
export async function startListening(
  server: Server,
  { port, host, bounds }: ListeningOptions,
): Promise<Listening> {
  server.maxConnections = bounds.maxConnections;
  server.on('drop', () => {
    bounds.onDropped('too_many_connections');
  });
  const connections = connectionsOf(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    cutConnections: () => {
      for (const socket of connections) socket.destroy();
    },
  };
}

/**
 * All connections of `server`. Unlike those of `closeAllConnections`, they include connections whose TLS handshake is
 * not over.
 * @param event `secureConnection` for the connections whose TLS handshake is over, as TLS sockets
 */
export function connectionsOf(
  server: Server,
  event: 'connection' | 'secureConnection' = 'connection',
): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  server.on(event, (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  return connections;
}
