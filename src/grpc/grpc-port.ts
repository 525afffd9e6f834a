import type { Http2Server } from 'node:http2';
import { createServer, type Server as TcpServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';

import { Server, ServerCredentials } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import type { Logger } from 'pino';

import { type Clock, systemClock } from '../common/clock.js';
import { FrequentLog } from '../common/frequent-log.js';
import type { Settings } from '../config/settings.js';
import type { WatchedFiles } from '../config/watched-files.js';
import type { Metrics, StreamDropReason } from '../metrics/prometheus-metrics.js';
import { connectionBounds, type Timeouts, TIMEOUTS } from '../net/connection-bounds.js';
import { type KeyPair, secureWith } from '../net/key-pair.js';
import { type ListeningOptions, startListening, type StoppableServer } from '../net/listening.js';
import type { Readiness } from '../readiness/readiness.js';
import type { Service } from '../service/service.js';
import { CallLog } from './call-log.js';
import { CallMessage } from './message-codec.js';
import { GatewayCall } from './gateway-call.js';
import { Health } from './health.js';
import { reflected } from './proto.js';
import { shouldRateLimit } from './should-rate-limit.js';
import { StreamBounds } from './stream-bounds.js';

/** More than 100 descriptors with long values need. */
const MAX_MESSAGE_BYTES = 256 * 1024;
/**
 * How often a connection gets a ping, and how long it may take to answer. A vanished gateway is noticed after both: within
 * a minute, as a vanished host over HTTP.
 */
const PINGS = { everyMillis: 30_000, answerMillis: 20_000 };

export type Pings = Readonly<typeof PINGS>;

export interface GrpcParts {
  readonly service: Service;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly settings: Settings;
  readonly logger: Logger;
}

/** Serves Envoy's rate limit service, with health and reflection. @throws SettingsError if the port or the host can't be used */
export async function openGrpcPort(
  parts: GrpcParts,
  keyPair: WatchedFiles<KeyPair> | undefined,
  port: number,
  timeouts: Timeouts = TIMEOUTS,
  clock: Clock = systemClock,
  pings: Pings = PINGS,
) {
  const { service, settings, logger, readiness } = parts;
  const bounds = connectionBounds(settings, parts.metrics, logger);
  const log = new CallLog(logger, settings);
  const answer = shouldRateLimit(service, settings, log);
  const server = new Server({
    // Channelz would count every call, and nothing can read the counts.
    'grpc.enable_channelz': 0,
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_concurrent_streams': settings.MAX_IN_FLIGHT_PER_CONNECTION,
    'grpc.keepalive_time_ms': pings.everyMillis,
    'grpc.keepalive_timeout_ms': pings.answerMillis,
  });
  new ReflectionService(reflected()).addToServer(server);
  const health = new Health(readiness);
  health.addTo(server);

  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const dropLog = new FrequentLog<StreamDropReason>(systemClock, (dropped) =>
    logger.warn({ dropped }, 'streams dropped'),
  );
  const streams = new StreamBounds({
    serveCall: (stream, headers, connection) => {
      const call = new GatewayCall(stream, headers, connection);
      if (!call.isGrpc()) return;
      try {
        service.access.enter('check', call);
        if (call.caller) call.accepted();
      } catch (error) {
        // Before its message is read.
        call.fail(log.failed(error, call));
        return;
      }
      call.read(MAX_MESSAGE_BYTES, (bytes) => answer(call, new CallMessage(bytes)));
    },
    maxWaiters: settings.MAX_WAITERS,
    timeouts,
    clock,
    onDropped: (reason) => {
      parts.metrics.streamDropped(reason);
      dropLog.note(reason);
    },
    onConnectionDropped: bounds.onDropped,
  });
  streams.apply(http2ServerOf(server));
  const listener = await listenForHttp2(
    { setting: 'GRPC_PORT', port, host: settings.HOST, keyPair, bounds },
    (socket) => {
      streams.begin(socket, () => injector.injectConnection(socket));
    },
  );
  return {
    port: listener.port,
    /** Makes the health service report the readiness from now on. Before, it reports NOT_SERVING. */
    startServing: () => health.begin(),
    /** Makes the health service tell gateways that their calls should go elsewhere. */
    startDraining: (): void => health.end(),
    stopAccepting: async (): Promise<void> => {
      await Promise.all([
        listener.stopAccepting(),
        new Promise<void>((resolve) => server.tryShutdown(() => resolve())),
      ]);
    },
    cutConnections: (): void => {
      server.forceShutdown();
      listener.cutConnections();
      bounds.close();
      streams.close();
      dropLog.close();
    },
  };
}

/**
 * The server of `node:http2` below one of grpc-js, which has no options for most of its bounds, and no way to its
 * streams.
 * @throws Error if this version of grpc-js keeps it elsewhere
 */
export function http2ServerOf(server: Server): Http2Server {
  const { http2Servers } = server as unknown as {
    readonly http2Servers?: ReadonlyMap<Http2Server, unknown>;
  };
  const [http2] = http2Servers?.keys() ?? [];
  if (!http2) throw new Error('this version of @grpc/grpc-js has no http2Servers to bound');
  return http2;
}

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

function createListener({ keyPair, handshakeMillis }: ListenerOptions, serve: Serve): TcpServer {
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
  server.on('tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy());
  keyPair.onReload((pair) => server.setSecureContext(secureWith(pair)));
  return server;
}
