import { type handleUnaryCall, Server, ServerCredentials } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import type { Logger } from 'pino';

import { systemClock } from '../common/clock.js';
import { FrequentLog } from '../common/frequent-log.js';
import type { Settings } from '../config/settings.js';
import { checkDecider } from '../http/deciding/decide-check.js';
import type { LatelyRefused } from '../http/deciding/lately-refused.js';
import { tracedDecider } from '../http/deciding/traced-requests.js';
import type { UndecidedChecks } from '../http/deciding/undecided-checks.js';
import { connectionBounds } from '../http/server/connection-bounds.js';
import type { Security } from '../http/server/security.js';
import type { HttpServer } from '../http/server/server.js';
import { type Timeouts, TIMEOUTS } from '../http/server/timeouts.js';
import type { Limiter } from '../limiter/limiter.js';
import type { Metrics, StreamDropReason } from '../metrics/metrics.js';
import type { Readiness } from '../readiness/readiness.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { Tracer } from '../tracing/tracer.js';
import { CallHeads } from './call-heads.js';
import { CallLog } from './call-log.js';
import type { CallMessage } from './call-message.js';
import type { GatewayCall } from './gateway-call.js';
import { Health, WATCH_PATH } from './health.js';
import { http2ServerOf } from './http2-server.js';
import { listenForHttp2 } from './listener.js';
import type { RateLimitResponse } from './messages.js';
import { loadHealthProto, loadProto, rateLimitService } from './proto.js';
import { reflected } from './reflected-proto.js';
import { shouldRateLimit, type ShouldRateLimitParts, type Turns } from './should-rate-limit.js';
import { StreamBounds } from './stream-bounds.js';

/** More than 100 descriptors of long values need. */
const MAX_MESSAGE_BYTES = 256 * 1024;
/** A gateway that has vanished is noticed after both together. */
const KEEPALIVE_MILLIS = 60_000;
const KEEPALIVE_TIMEOUT_MILLIS = 20_000;

/** The parts of the service that gRPC uses. */
export interface GrpcParts {
  readonly limiter: Limiter;
  readonly policyOf: (key: string) => KeyPolicy;
  readonly undecided: Pick<UndecidedChecks, 'note'>;
  readonly lately: LatelyRefused;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly tracer?: Tracer | undefined;
  readonly turns: Turns;
  readonly settings: Settings;
  readonly logger: Logger;
}

/** A port that serves Envoy's rate limit service, with health and reflection. */
export interface GrpcPort extends HttpServer {
  /** Has health tell the readiness from now on. Until then it says that the service does not serve. */
  startServing(): Promise<void>;
  /** Has gateways hear that their calls should go elsewhere. */
  startDraining(): void;
}

/**
 * Serves Envoy's rate limit service.
 * @throws the error of listen(2), such as EADDRINUSE
 */
export async function openGrpcPort(
  parts: GrpcParts,
  { access, keyPair }: Security,
  port: number,
  timeouts: Timeouts = TIMEOUTS,
): Promise<GrpcPort> {
  const { settings, logger, readiness } = parts;
  const bounds = connectionBounds(settings, parts.metrics, logger);
  const proto = loadProto();
  const service = rateLimitService(proto);
  const callPath = service.ShouldRateLimit.path;
  const log = new CallLog(logger, settings);
  const heads = new CallHeads({ callPath, access, log });
  const server = new Server({
    interceptors: [heads.interceptor],
    // Each call would pay for counts that nobody can ask for.
    'grpc.enable_channelz': 0,
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_concurrent_streams': settings.MAX_IN_FLIGHT_PER_CONNECTION,
    'grpc.keepalive_time_ms': KEEPALIVE_MILLIS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MILLIS,
  });
  server.addService(service, { ShouldRateLimit: handlerOf({ ...parts, access, heads, log }) });
  const described = reflected({ ...proto, ...loadHealthProto() });
  new ReflectionService(described).addToServer(server);
  const health = new Health(readiness, systemClock);
  health.addTo(server);

  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const dropLog = new FrequentLog<StreamDropReason>(systemClock, (dropped) => {
    logger.warn({ dropped }, 'streams dropped');
  });
  const streams = new StreamBounds({
    callPath,
    watchPath: WATCH_PATH,
    maxWaiters: settings.MAX_WAITERS,
    timeouts,
    clock: systemClock,
    onDropped: (reason) => {
      parts.metrics.streamDropped(reason);
      dropLog.note(reason);
    },
  });
  streams.apply(http2ServerOf(server));
  const listener = await listenForHttp2(
    { port, host: settings.HOST, keyPair, bounds },
    (socket) => {
      injector.injectConnection(socket);
    },
  );
  return {
    port: listener.port,
    startServing: () => health.begin(),
    startDraining: () => {
      health.end();
    },
    stopAccepting: async () => {
      await Promise.all([
        listener.stopAccepting(),
        new Promise<void>((resolve) => server.tryShutdown(() => resolve())),
      ]);
    },
    cutConnections: () => {
      server.forceShutdown();
      listener.cutConnections();
      bounds.close();
      streams.close();
      dropLog.close();
    },
  };
}

function handlerOf(
  parts: GrpcParts & Pick<Security, 'access'> & Pick<ShouldRateLimitParts, 'heads' | 'log'>,
): handleUnaryCall<CallMessage, RateLimitResponse> {
  const decider = checkDecider<GatewayCall>({
    ...parts,
    untilDisconnect: (call, work) => call.whilePresent(work),
  });
  const { tracer } = parts;
  return shouldRateLimit({ ...parts, decide: tracer ? tracedDecider(decider, tracer) : decider });
}
