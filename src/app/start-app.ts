import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

import type { Logger } from 'pino';

import { systemClock } from '../common/clock.js';
import { inOrder, withEach } from '../common/steps.js';
import { eventLoop as ticks } from '../common/ticks.js';
import type { Settings } from '../config/settings.js';
import type { WatchedFiles } from '../config/watched-files.js';
import type { HttpParts } from '../http/routes/http-parts.js';
import { openPorts } from '../http/server/ports.js';
import { createMetrics } from '../metrics/prometheus-metrics.js';
import { type KeyPair, watchKeyPair } from '../net/key-pair.js';
import { EventLoopWatch } from '../readiness/event-loop-watch.js';
import { isReadySoon, ServiceReadiness } from '../readiness/readiness.js';
import { openRules } from '../rules/rules.js';
import { openAccess } from '../service/callers/access.js';
import { bearerAccess, CallerPlaces, TokenRejections } from '../service/callers/bearer-access.js';
import { warnOfOpenAccess } from '../service/callers/open-access.js';
import { watchTokenFile } from '../service/callers/tokens.js';
import { RecentDenials } from '../service/deciding/recent-denials.js';
import { Slices } from '../service/deciding/slices.js';
import { UndecidedChecks } from '../service/deciding/decide-check.js';
import { Fleet } from '../service/fleet/fleet.js';
import { CountedKeys } from '../service/fleet/counted-keys.js';
import { createService } from '../service/service.js';
import { openTracing } from '../tracing/open-tracing.js';
import type { Environment } from '../tracing/trace-settings.js';
import { type CreatedLimiter, createLimiter } from './create-limiter.js';
import { serveUntilSeen, stopInOrder } from './stop-in-order.js';

/** A serving replica. */
export type App = Awaited<ReturnType<typeof startApp>>;

/**
 * Puts the parts together and serves.
 * @param environment the variables of OpenTelemetry
 * @param log what is known of the log's output
 * @throws SettingsError for a file in the settings that can't be used
 */
export async function startApp(
  settings: Settings,
  logger: Logger,
  environment: Environment = {},
  log: { readonly dropped: number } = { dropped: 0 },
) {
  const security = await openSecurity(settings, logger);
  const replicaId = `${hostname()}-${randomBytes(4).toString('hex')}`;
  const rules = await openRules(settings, logger);
  const metrics = createMetrics(
    () => limiter.waiting(),
    rules,
    security.tokens,
    security.rejections,
    () => isReadySoon(readiness, systemClock),
    log,
  );
  const tracing = await openTracing(environment, { replicaId, clock: systemClock, logger });
  const { limiter, store, policyOf, openReports, evictionPolicy }: CreatedLimiter =
    await createLimiter(
      settings,
      rules,
      replicaId,
      logger,
      tracing ? tracing.observerBefore(metrics) : metrics,
    );
  rules.onReload(() => limiter.limitsChanged());
  const eventLoop = new EventLoopWatch({
    limitMillis: settings.MAX_EVENT_LOOP_DELAY_MILLIS,
    clock: systemClock,
    logger,
  });
  const readiness = new ServiceReadiness({
    limiter,
    eventLoop,
    evictionPolicy,
    readyDuringOutage: settings.READY_DURING_OUTAGE,
  });
  const recentDenials = new RecentDenials();
  const countedKeys = new CountedKeys(limiter, systemClock, () => metrics.decisionTotals());
  const fleet = new Fleet({
    report: async () => ({
      replica: replicaId,
      uptimeMillis: performance.now(),
      decisions: await metrics.decisionTotals(),
      waiting: limiter.waiting(),
      rules: rules.current.digest,
      denied: recentDenials.all(),
      activity: countedKeys.activity(),
    }),
    countedKeys,
    open: settings.DEBUG_ENDPOINTS ? openReports : undefined,
  });
  const undecided = new UndecidedChecks(metrics, systemClock, logger);
  const ports = await openAllPorts(
    {
      service: createService({
        limiter,
        store,
        policyOf,
        metrics,
        undecided,
        recentDenials,
        countedKeys,
        fleet,
        access: security.access,
        slices: new Slices(ticks),
        tracer: tracing?.tracer,
        settings,
      }),
      rules,
      metrics,
      replica: replicaId,
      readiness,
      settings,
      logger,
    },
    security.keyPair,
  );
  // Only the dashboard tells what was counted.
  if (settings.DEBUG_ENDPOINTS) countedKeys.start();
  readiness.startServing();
  await ports.startServing();
  const { port, adminPort, grpcPort } = ports;
  const { ALGORITHM, WINDOW_MILLIS, MAX_REQUESTS, MAX_REQUESTS_IN_QUEUE } = settings;
  const kind =
    settings.REDIS_URL === undefined
      ? { limiter: 'embedded', store: 'memory' }
      : { limiter: 'redis', store: 'redis', replica: replicaId };
  const limits = {
    algorithm: ALGORITHM,
    windowMillis: WINDOW_MILLIS,
    maxRequests: MAX_REQUESTS,
    maxRequestsInQueue: MAX_REQUESTS_IN_QUEUE,
    rules: rules.current.rules.length,
  };
  const tls = security.keyPair ? { tls: true } : {};
  logger.info(
    { host: settings.HOST, port, adminPort, grpcPort, ...tls, ...kind, ...limits },
    'serving',
  );
  warnOfOpenAccess(settings, logger);
  return {
    port,
    /** Where `/debug` and `/metrics` are, if not on the port of the checks. */
    adminPort,
    /** Where gateways ask, if there is a port for them. */
    grpcPort,
    /** Reads the rules again, without waiting for the next look at their file. */
    reloadRules: () => rules.check(),
    /**
     * Is not ready from now on, and serves for SHUTDOWN_DELAY_MILLIS more. Then it stops accepting, answers the requests
     * in flight, gives waiting requests up to `graceMillis`, and fails the rest. Nothing of this replica stays in Redis.
     * @param hurry ends the delay and the grace at once when it is aborted
     * @throws AggregateError of what single steps have thrown, after all steps
     */
    stop: async (graceMillis: number, hurry?: AbortSignal): Promise<void> => {
      await inOrder([
        () => readiness.startDraining(),
        () => ports.startDraining(),
        () => serveUntilSeen(ports, settings.SHUTDOWN_DELAY_MILLIS, hurry),
        () => stopInOrder(ports, limiter, graceMillis, hurry),
        () => tracing?.close(),
        () => withEach([security, undecided, countedKeys, rules], (part) => part.close()),
        () => eventLoop.stop(),
      ]);
    },
  };
}

/**
 * Serves on all ports that the settings name. They start and stop together.
 * @throws SettingsError if the port or the host can't be used
 */
async function openAllPorts(parts: HttpParts, keyPair: WatchedFiles<KeyPair> | undefined) {
  const { GRPC_PORT } = parts.settings;
  const http = await openPorts(parts, keyPair);
  if (GRPC_PORT === undefined) {
    return { ...http, grpcPort: undefined, startServing: () => Promise.resolve() };
  }
  // Loaded only if it is used.
  const { openGrpcPort } = await import('../grpc/grpc-port.js');
  const grpc = await openGrpcPort(parts, keyPair, GRPC_PORT);
  return {
    ...http,
    grpcPort: grpc.port,
    startServing: () => grpc.startServing(),
    startDraining: () => {
      http.startDraining();
      grpc.startDraining();
    },
    // It asks connections of gRPC to end. Their clients send again any request that crosses it.
    stopAccepting: () => withEach([http, grpc], (port) => port.stopAccepting()),
    cutConnections: () => withEach([http, grpc], (port) => port.cutConnections()),
  };
}

/**
 * Reads the files with the tokens and the certificate of the service, and watches them.
 * @throws SettingsError for a file that can't be read, or is invalid
 */
async function openSecurity(settings: Settings, logger: Logger) {
  const { AUTH_TOKENS_FILE, TLS_CERT_FILE, TLS_KEY_FILE } = settings;
  const keyPair =
    TLS_CERT_FILE !== undefined && TLS_KEY_FILE !== undefined
      ? await watchKeyPair(TLS_CERT_FILE, TLS_KEY_FILE, logger)
      : undefined;
  const tokens =
    AUTH_TOKENS_FILE === undefined ? undefined : await watchTokenFile(AUTH_TOKENS_FILE, logger);
  const rejections = new TokenRejections(systemClock, logger);
  const places = new CallerPlaces(settings.MAX_WAITERS, settings.MAX_WAITERS_PER_CALLER);
  return {
    access: tokens ? bearerAccess(tokens, rejections, places) : openAccess(),
    tokens,
    rejections: rejections.counts,
    keyPair,
    close: () => {
      keyPair?.close();
      tokens?.close();
      rejections.close();
    },
  };
}
