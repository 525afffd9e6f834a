import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';

import type { Express } from 'express';

import type { WatchedFiles } from '../../config/watched-files.js';
import {
  type ConnectionBounds,
  SILENCE_MILLIS,
  type Timeouts,
  TIMEOUTS,
} from '../../net/connection-bounds.js';
import { type KeyPair, secureWith } from '../../net/key-pair.js';
import { connectionsOf, type ListeningOptions, startListening } from '../../net/listening.js';
import { UntrustedConnections } from '../../net/untrusted-connections.js';
import { toOriginForm } from '../intake/intake.js';
import type { HttpApp } from '../routes/routes.js';
import { endIdle, endUnowed, stopAccepting } from './connections.js';
import { countRequests, judgeRequests } from './judged-requests.js';
import { boundPipelines } from './pipelines.js';
import { answerUnreadable, type UnreadableRequest } from './unreadable-requests.js';

export const MAX_HEADER_BYTES = 16 * 1024;

/** A server whose connections may be idle between two requests. */
export type KeptAliveServer = Awaited<ReturnType<typeof listen>>;

export interface ListenOptions extends ListeningOptions {
  /** The key pair of a server that speaks TLS. A new pair applies to new connections. */
  readonly keyPair?: WatchedFiles<KeyPair> | undefined;
  readonly onUnreadable: (request: UnreadableRequest) => void;
  readonly bounds: ConnectionBounds;
  /** Whether only requests with a token are accepted. */
  readonly needTokens?: boolean;
  readonly timeouts?: Timeouts;
}

type Options = ServerOptions<typeof IncomingMessage, typeof ServerResponse<IncomingMessage>>;

/** Passes checks without parameters to their own handler, and every other request to Express. */
export function requestListener({ app, answerUnrouted }: HttpApp): RequestListener {
  return (request, response) => {
    toOriginForm(request);
    if (!answerUnrouted?.(request, response)) app(request, response);
  };
}

/** Serves `httpApp` on a port. @throws SettingsError if the port or the host can't be used */
export async function listen(httpApp: HttpApp, options: ListenOptions) {
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
  server.on('clientError', (_error, socket) => untrusted.take(untrusted.of(socket)));
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
    /**
     * Ends the idle connections gradually, within `millis`.
     * @param hurry ends the rest at once when it is aborted
     */
    endIdle: (millis: number, hurry?: AbortSignal) => endIdle(server, connections, millis, hurry),
    /** Ends the connections that are owed no answer. Nothing that arrives later is answered. */
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
  keyPair.onReload((pair) => server.setSecureContext(secureWith(pair)));
  return server;
}

/**
 * Classes for the messages of a server that passes them to `app`.
 *
 * Express sets the prototype of every request and response by `Object.setPrototypeOf`, and V8 then takes its slow paths
 * for all uses of the object. A message that was made with that prototype stays fast, since the call changes nothing: a
 * check takes a third of the time.
 */
export function messageClassesFor(app: Express) {
  class ExpressRequest extends IncomingMessage {}
  class ExpressResponse extends ServerResponse {}
  Object.setPrototypeOf(ExpressRequest.prototype, app.request);
  Object.setPrototypeOf(ExpressResponse.prototype, app.response);
  app.request = ExpressRequest.prototype as Express['request'];
  app.response = ExpressResponse.prototype as Express['response'];
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse };
}

/**
 * Serves a request with an `Upgrade` header as any other, which is how a server ignores the header (RFC 9110, section
 * 7.8), and makes its answer end the connection. Node's parser drops the bytes that it has read behind such a request,
 * and takes the next bytes for the start of a request, even if they are the rest of a dropped one.
 */
function endAtUpgrades(serve: RequestListener): RequestListener {
  const ending = new WeakSet<Socket>();
  return (request, response) => {
    // Node gives a response no connection while it has to wait for an earlier one.
    if (response.socket === null && ending.has(request.socket)) {
      request.resume();
      return;
    }
    // Without this connection option the header is not for this connection, and the parser ignores it.
    const { upgrade, connection = '' } = request.headers;
    if (upgrade !== undefined && /\bupgrade\b/i.test(connection)) {
      ending.add(request.socket);
      response.shouldKeepAlive = false;
    }
    serve(request, response);
  };
}
