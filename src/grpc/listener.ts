import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';

import type { WatchedFiles } from '../config/watched-files.js';
import { type ListeningOptions, startListening, type StoppableServer } from '../net/listening.js';
import { TIMEOUTS } from '../net/timeouts.js';
import { type KeyPair, secureWith } from '../net/key-pair.js';

export interface ListenerOptions extends ListeningOptions {
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  /** How long a client may take to agree on TLS. */
  readonly handshakeMillis?: number;
}

type Serve = (socket: Socket) => void;

/**
 * Listens for connections that speak HTTP/2, with TLS if there is a key pair, and passes each to `serve`. grpc-js can
 * listen itself, but it does not bound connections, and keeps the first certificate.
 * @throws SettingsError if the port or the host can't be used
 */
export async function listenForHttp2(
  options: ListenerOptions,
  serve: Serve,
): Promise<StoppableServer> {
  let isStopping = false;
  const server = createListener(options, (socket) => {
    // A connection whose TLS handshake ends now would not be asked to end.
    if (isStopping) socket.destroy();
    else serve(socket);
  });
  const listening = await startListening(server, options);
  return {
    ...listening,
    stopAccepting: () => {
      isStopping = true;
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function createListener({ keyPair, handshakeMillis }: ListenerOptions, serve: Serve): Server {
  if (!keyPair) return createServer(serve);
  const server = createTlsServer(
    {
      ...secureWith(keyPair.current),
      ALPNProtocols: ['h2'],
      handshakeTimeout: handshakeMillis ?? TIMEOUTS.headMillis,
    },
    (socket) => {
      // HTTP/2 does not handle all errors of its sockets: https://github.com/nodejs/node/issues/35824
      socket.on('error', () => undefined);
      serve(socket);
    },
  );
  // Node reports a handshake that takes too long, and leaves its connection open.
  server.on('tlsClientError', (_error: Error, socket: TLSSocket) => {
    socket.destroy();
  });
  keyPair.onReload((pair) => {
    server.setSecureContext(secureWith(pair));
  });
  return server;
}
