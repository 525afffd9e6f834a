import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

import type { WatchedFiles } from '../config/watched-files.js';
import type { ConnectionBounds } from '../http/server/connection-bounds.js';
import { TIMEOUTS } from '../http/server/timeouts.js';
import { type KeyPair, secureWith } from '../http/server/tls/key-pair.js';

export interface ListenerOptions {
  /** 0 for any that is free */
  readonly port: number;
  readonly host: string;
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  readonly bounds: Pick<ConnectionBounds, 'maxConnections' | 'onDropped'>;
}

/**
 * Listens for connections that speak HTTP/2, by TLS where there is a key pair, and hands each to `serve`. grpc-js would
 * listen by itself, but it bounds no connections, and keeps the first certificate.
 * @throws the error of listen(2), such as EADDRINUSE
 */
export async function listenForHttp2(
  { port, host, keyPair, bounds }: ListenerOptions,
  serve: (socket: Socket) => void,
): Promise<Server> {
  const server = keyPair ? createSecureListener(keyPair, serve) : createServer(serve);
  server.maxConnections = bounds.maxConnections;
  server.on('drop', () => {
    bounds.onDropped('too_many_connections');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return server;
}

function createSecureListener(
  keyPair: WatchedFiles<KeyPair>,
  serve: (socket: Socket) => void,
): Server {
  const server = createTlsServer(
    {
      ...secureWith(keyPair.current),
      ALPNProtocols: ['h2'],
      handshakeTimeout: TIMEOUTS.headMillis,
    },
    serve,
  );
  keyPair.onReload((pair) => {
    server.setSecureContext(secureWith(pair));
  });
  return server;
}
