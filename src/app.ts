import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

import type { Logger } from 'pino';

import { systemClock } from './clock.js';
import type { Settings } from './config/settings.js';
import { createLimiter } from './create-limiter.js';
import { openPorts, type Ports } from './http/server/ports.js';
import { openSecurity } from './http/server/security.js';
import type { Limiter } from './limiter/limiter.js';
import { createMetrics } from './metrics/prometheus-metrics.js';
import { EventLoopWatch } from './readiness/event-loop-watch.js';
import { ServiceReadiness } from './readiness/service-readiness.js';

const WAITING_POLL_MILLIS = 20;
/** How long the last answers may take to reach their clients when the replica stops. */
const LINGER_MILLIS = 1000;

/** A replica that serves. */
export interface App {
  readonly port: number;
  /** Where `/debug` and `/metrics` are, if not on the port of the checks. */
  readonly adminPort: number | undefined;
  /**
   * Is not ready from now on, and serves for SHUTDOWN_DELAY_MILLIS more. Then stops accepting, answers
   * what is in flight, gives those who wait up to `graceMillis`, turns them away and leaves nothing of
   * this replica in Redis.
   * @param hurry aborted to end the delay and the grace at once
   */
  stop(graceMillis: number, hurry?: AbortSignal): Promise<void>;
}

/**
 * Puts the parts together and serves.
 * @throws SettingsError for a file that the settings name, and that can't be used
 */
export async function startApp(settings: Settings, logger: Logger): Promise<App> {
  const security = await openSecurity(settings, logger);
  const replicaId = `${hostname()}-${randomBytes(4).toString('hex')}`;
  const metrics = createMetrics(() => limiter.waiting);
  const limiter: Limiter = await createLimiter(settings, replicaId, logger, metrics);
  const eventLoop = new EventLoopWatch({
    limitMillis: settings.MAX_EVENT_LOOP_DELAY_MILLIS,
    clock: systemClock,
    logger,
  });
  const readiness = new ServiceReadiness({
    limiter,
    eventLoop,
    readyDuringOutage: settings.READY_DURING_OUTAGE,
  });
  const ports = await openPorts({ limiter, metrics, readiness, settings, logger }, security);
  const { port, adminPort } = ports;
  const kind =
    settings.REDIS_URL === undefined
      ? { limiter: 'embedded' }
      : { limiter: 'redis', replica: replicaId };
  const tls = security.keyPair ? { tls: true } : {};
  logger.info({ host: settings.HOST, port, adminPort, ...tls, ...kind }, 'serving');
  return {
    port,
    adminPort,
    stop: async (graceMillis, hurry) => {
      readiness.startDraining();
      ports.startDraining();
      await untilSeen(settings.SHUTDOWN_DELAY_MILLIS, hurry);
      await stop(ports, limiter, graceMillis, hurry);
      security.close();
      eventLoop.stop();
    },
  };
}

/** Resolves when whoever sends requests here had the time to see that it should not, or at once in a hurry. */
async function untilSeen(delayMillis: number, hurry: AbortSignal | undefined): Promise<void> {
  // Not even a turn of the event loop, in which somebody could still be accepted.
  if (delayMillis === 0) return;
  try {
    await delay(delayMillis, undefined, { signal: hurry });
  } catch {
    // The signal is all that can end it early.
  }
}

async function stop(
  ports: Ports,
  limiter: Limiter,
  graceMillis: number,
  hurry: AbortSignal | undefined,
): Promise<void> {
  const everyoneGone = ports.stopAccepting();
  await Promise.race([everyoneGone, nobodyWaiting(limiter, graceMillis, hurry)]);
  // Requests under way need a moment; a connection that says nothing does not get the whole grace.
  if (limiter.waiting === 0) {
    await Promise.race([everyoneGone, delay(LINGER_MILLIS, undefined, { ref: false })]);
  }
  await limiter.close();
  await Promise.race([everyoneGone, delay(LINGER_MILLIS, undefined, { ref: false })]);
  ports.cutConnections();
  await everyoneGone;
}

/** Resolves when no request waits for its turn, when the grace is over, or at once when in a hurry. */
async function nobodyWaiting(
  limiter: Limiter,
  graceMillis: number,
  hurry: AbortSignal | undefined,
): Promise<void> {
  const graceEndsAt = performance.now() + graceMillis;
  while (limiter.waiting > 0 && performance.now() < graceEndsAt && !hurry?.aborted) {
    await delay(WAITING_POLL_MILLIS);
  }
}
