import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

import type { Express } from 'express';

import type { WatchedFiles } from '../../config/watched-files.js';
import { toOriginForm } from '../intake/intake.js';
import { connectionsOf, endIdle, stopAccepting } from './connections.js';
import type { ConnectionBounds } from './connection-bounds.js';
import { type Listening, type ListeningOptions, startListening } from './listening.js';
import { type MessageClasses, messageClassesFor } from './message-classes.js';
import { boundPipelines } from './pipelines.js';
import { type Timeouts, TIMEOUTS } from './timeouts.js';
import { type KeyPair, secureWith } from './tls/key-pair.js';
import { answerUnreadable, type UnreadableRequest } from './unreadable-requests.js';
import { endAtUpgrades } from './upgrades.js';

export const MAX_HEADER_BYTES = 16 * 1024;

/** A listening server, and how to end it without cutting an answer off. */
export interface HttpServer extends Listening {
  /** Takes no new connection from now on. Resolves when the last has ended. */
  stopAccepting(): Promise<void>;
}

/** One whose connections may be idle between two requests. */
export interface KeptAliveServer extends HttpServer {
  /**
   * Ends the idle connections little by little, within `millis`.
   * @param hurry ends the time at once when it is aborted
   */
  endIdle(millis: number, hurry?: AbortSignal): Promise<void>;
}

export interface ListenOptions extends ListeningOptions {
  /** The key pair of a server that speaks TLS. A pair that comes later is for later connections. */
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  readonly onUnreadable: (request: UnreadableRequest) => void;
  readonly bounds: ConnectionBounds;
  readonly timeouts?: Timeouts;
}

type Options = ServerOptions<MessageClasses['IncomingMessage'], MessageClasses['ServerResponse']>;

/**
 * Serves `app` on a port.
 * @throws the error of listen(2), such as EADDRINUSE
 */
export async function listen(app: Express, options: ListenOptions): Promise<KeptAliveServer> {
  const { keyPair, onUnreadable, bounds, timeouts = TIMEOUTS } = options;
  const httpOptions: Options = {
    ...messageClassesFor(app),
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeouts.headMillis,
    requestTimeout: timeouts.requestMillis,
    keepAliveTimeout: timeouts.idleMillis,
    connectionsCheckingInterval: timeouts.checkMillis,
    // Node would answer a request without a Host header by itself, with a 400 that has no body.
    requireHostHeader: false,
  };
  const server = keyPair
    ? createHttpsServer(httpOptions, keyPair, timeouts.headMillis)
    : createServer(httpOptions);
  const connections = connectionsOf(server, keyPair ? 'secureConnection' : 'connection');
  answerUnreadable(server, onUnreadable);
  const serve = endAtUpgrades(
    boundPipelines(
      (request, response) => {
        toOriginForm(request);
        app(request, response);
      },
      { ...bounds, stallMillis: timeouts.requestMillis },
    ),
  );
  server.on('request', serve);
  // Node would answer an unknown expectation by itself, with a 417 that has no body.
  server.on('checkExpectation', serve);
  const listening = await startListening(server, options);
  return {
    ...listening,
    endIdle: (millis, hurry) => endIdle(connections, millis, hurry),
    stopAccepting: () => stopAccepting(server, connections),
  };
}

function createHttpsServer(
  options: Options,
  keyPair: WatchedFiles<KeyPair>,
  handshakeTimeout: number,
): Server {
  const server = createTlsServer({ ...options, ...secureWith(keyPair.current), handshakeTimeout });
  keyPair.onReload((pair) => {
    server.setSecureContext(secureWith(pair));
  });
  return server;
}
