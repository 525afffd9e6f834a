import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';

import type { WatchedFiles } from '../../config/watched-files.js';
import { toOriginForm } from '../intake/intake.js';
import type { HttpApp } from '../routes/routes.js';
import { endIdle, endUnowed, stopAccepting } from './connections.js';
import type { ConnectionBounds } from '../../net/connection-bounds.js';
import {
  connectionsOf,
  type ListeningOptions,
  startListening,
  type StoppableServer,
} from '../../net/listening.js';
import { countRequests, judgeRequests } from './judged-requests.js';
import { type MessageClasses, messageClassesFor } from './message-classes.js';
import { boundPipelines } from './pipelines.js';
import { SILENCE_MILLIS, type Timeouts, TIMEOUTS } from '../../net/timeouts.js';
import { type KeyPair, secureWith } from '../../net/key-pair.js';
import { UntrustedConnections } from '../../net/untrusted-connections.js';
import { answerUnreadable, type UnreadableRequest } from './unreadable-requests.js';
import { endAtUpgrades } from './upgrades.js';

export const MAX_HEADER_BYTES = 16 * 1024;

/** A server whose connections may be idle between two requests. */
export interface KeptAliveServer extends StoppableServer {
  /**
   * Ends the idle connections gradually, within `millis`.
   * @param hurry ends the rest at once when it is aborted
   */
  endIdle(millis: number, hurry?: AbortSignal): Promise<void>;
  /** Ends the connections that are owed no answer. Nothing that arrives later is answered. */
  endUnowed(): Promise<void>;
}

export interface ListenOptions extends ListeningOptions {
  /** The key pair of a server that speaks TLS. A new pair applies to new connections. */
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  readonly onUnreadable: (request: UnreadableRequest) => void;
  readonly bounds: ConnectionBounds;
  /** Whether only requests with a token are accepted. */
  readonly needTokens?: boolean;
  readonly timeouts?: Timeouts;
}

type Options = ServerOptions<MessageClasses['IncomingMessage'], MessageClasses['ServerResponse']>;

/** Passes plain checks to their own handler, and every other request to Express. */
export function requestListener({ app, answerPlainCheck }: HttpApp): RequestListener {
  return (request, response) => {
    toOriginForm(request);
    if (!answerPlainCheck?.(request, response)) app(request, response);
  };
}

/**
 * Serves `httpApp` on a port.
 * @throws SettingsError if the port or the host can't be used
 */
export async function listen(httpApp: HttpApp, options: ListenOptions): Promise<KeptAliveServer> {
  const { keyPair, onUnreadable, bounds, needTokens = false, timeouts = TIMEOUTS } = options;
  const httpOptions: Options = {
    ...messageClassesFor(httpApp.app),
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeouts.headMillis,
    requestTimeout: timeouts.requestMillis,
    keepAliveTimeout: timeouts.idleMillis,
    connectionsCheckingInterval: timeouts.checkMillis,
    keepAlive: true,
    keepAliveInitialDelay: SILENCE_MILLIS,
    // By default Node answers a request without a Host header itself, with a 400 that has no body.
    requireHostHeader: false,
  };
  const server = keyPair
    ? createHttpsServer(httpOptions, keyPair, timeouts.headMillis)
    : createServer(httpOptions);
  const event = keyPair ? 'secureConnection' : 'connection';
  const connections = connectionsOf(server, event);
  const untrusted = new UntrustedConnections();
  server.on(event, (socket: Socket) => void untrusted.begin(socket));
  server.on('clientError', (_error, socket) => {
    untrusted.take(untrusted.of(socket));
  });
  answerUnreadable(server, (socket) => untrusted.isStopped(socket), onUnreadable);
  const stopWatch = httpApp.unsent.watch(connections, timeouts.requestMillis, bounds.onDropped);
  server.once('close', stopWatch);
  const judged = judgeRequests(requestListener(httpApp), untrusted, { ...bounds, needTokens });
  const serve = countRequests(endAtUpgrades(boundPipelines(judged, bounds)), untrusted);
  server.on('request', serve);
  // Without a listener Node answers an unknown expectation itself, with a 417 that has no body.
  server.on('checkExpectation', serve);
  const listening = await startListening(server, options);
  return {
    ...listening,
    endIdle: (millis, hurry) => endIdle(server, connections, millis, hurry),
    endUnowed: () => {
      // A TLS handshake may still end.
      server.on(event, (socket: Socket) => socket.destroy());
      return endUnowed(connections);
    },
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
