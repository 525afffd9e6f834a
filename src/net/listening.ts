import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

import { SettingsError } from '../config/named-file.js';
import type { ConnectionBounds } from './connection-bounds.js';

/** Where a server listens, and the bounds of its connections. */
export interface ListeningOptions {
  /** The setting of the port, for errors. */
  readonly setting: 'PORT' | 'ADMIN_PORT' | 'GRPC_PORT';
  /** 0 for any free port */
  readonly port: number;
  readonly host: string;
  readonly bounds: Pick<ConnectionBounds, 'maxConnections' | 'onDropped'>;
}

/** A server that listens, and how to end it without cutting an answer off. */
export interface StoppableServer {
  readonly port: number;
  /** Takes no new connection from now on. Resolves when the last has ended. */
  stopAccepting(): Promise<void>;
  /** Ends all connections, including those with a request that is partly sent. */
  cutConnections(): void;
}

/**
 * Makes a server listen, with bounds for its connections.
 * @throws SettingsError if the port or the host can't be used
 */
export async function startListening(
  server: Server,
  { setting, port, host, bounds }: ListeningOptions,
): Promise<Omit<StoppableServer, 'stopAccepting'>> {
  server.maxConnections = bounds.maxConnections;
  server.on('drop', () => bounds.onDropped('too_many_connections'));
  const connections = connectionsOf(server);
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    throw listenError(error as NodeJS.ErrnoException, setting, `${port}`, host);
  }
  return {
    port: (server.address() as AddressInfo).port,
    cutConnections: () => {
      for (const socket of connections) socket.destroy();
    },
  };
}

/** What a setting takes, by the error of listen(2) that its value leads to. */
const TAKES: Readonly<Record<string, readonly ['port' | 'host', string]>> = {
  EADDRINUSE: ['port', 'a port that no other process listens on'],
  EACCES: ['port', 'a port that this process may listen on'],
  EADDRNOTAVAIL: ['host', 'an address of this machine'],
  ENOTFOUND: ['host', 'an address of this machine'],
  EAI_AGAIN: ['host', 'an address of this machine'],
};

function listenError(
  error: NodeJS.ErrnoException,
  setting: ListeningOptions['setting'],
  port: string,
  host: string,
): Error {
  const { code = '' } = error;
  const [part, takes] = TAKES[code] ?? [];
  if (takes === undefined) return error;
  return part === 'port'
    ? new SettingsError(setting, `${port} (${code})`, takes)
    : new SettingsError('HOST', `${JSON.stringify(host)} (${code})`, takes);
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
