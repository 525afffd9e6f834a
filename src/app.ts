import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

import type { Logger } from 'pino';

import { systemClock } from './clock.js';
import type { Settings } from './config.js';
import { startDraining } from './http/drain.js';
import { createHttpApp } from './http/routes.js';
import { type HttpServer, listen } from './http/server.js';
import type { Limiter, Limits } from './limiter/limiter.js';
import { MemoryLimiter } from './limiter/memory/memory-limiter.js';
import { connect, waitUntilReady } from './redis/connections.js';
import { RedisLimiter } from './redis/redis-limiter.js';

const WAITING_POLL_MILLIS = 20;
/** How long the last answers may take to reach their clients when the replica stops. */
const LINGER_MILLIS = 1000;

/** A replica that serves. */
export interface App {
  readonly port: number;
  /**
   * Stops accepting, answers what is in flight, gives those who wait up to `graceMillis`, then turns
   * them away and leaves nothing of this replica in Redis.
   * @param hurry aborted to end the grace at once
   */
  stop(graceMillis: number, hurry?: AbortSignal): Promise<void>;
}

/** Puts the parts together and serves. */
export async function startApp(settings: Settings, logger: Logger): Promise<App> {
  const replicaId = `${hostname()}-${randomBytes(4).toString('hex')}`;
  const limiter = await createLimiter(settings, replicaId, logger);
  const httpApp = createHttpApp(limiter, settings, logger);
  const server = await listen(httpApp, settings.PORT, settings.HOST);
  const kind =
    settings.REDIS_URL === undefined
      ? { limiter: 'embedded' }
      : { limiter: 'redis', replica: replicaId };
  logger.info({ host: settings.HOST, port: server.port, ...kind }, 'serving');
  return {
    port: server.port,
    stop: (graceMillis, hurry) => {
      startDraining(httpApp);
      return stop(server, limiter, graceMillis, hurry);
    },
  };
}

async function createLimiter(
  settings: Settings,
  replicaId: string,
  logger: Logger,
): Promise<Limiter> {
  const limits: Limits = {
    windowMillis: settings.WINDOW_MILLIS,
    maxRequests: settings.MAX_REQUESTS,
    maxRequestsInQueue: settings.MAX_REQUESTS_IN_QUEUE,
  };
  if (settings.REDIS_URL === undefined) return new MemoryLimiter(limits, systemClock);

  const connections = connect(
    {
      url: settings.REDIS_URL,
      timeoutMillis: settings.STORE_TIMEOUT_MILLIS,
      name: `sluice:${replicaId}`,
    },
    logger,
  );
  // Serving before the first connection would turn the first callers away for nothing.
  await waitUntilReady(connections.commands, settings.STORE_TIMEOUT_MILLIS);
  return new RedisLimiter({
    connections,
    limits,
    keyPrefix: settings.KEY_PREFIX,
    replicaId,
    leaseMillis: settings.REPLICA_LEASE_MILLIS,
    clock: systemClock,
    logger,
  });
}

async function stop(
  server: HttpServer,
  limiter: Limiter,
  graceMillis: number,
  hurry: AbortSignal | undefined,
): Promise<void> {
  const everyoneGone = server.stopAccepting();
  await Promise.race([everyoneGone, nobodyWaiting(limiter, graceMillis, hurry)]);
  // Requests under way need a moment; a connection that says nothing does not get the whole grace.
  if (limiter.waiting === 0) {
    await Promise.race([everyoneGone, delay(LINGER_MILLIS, undefined, { ref: false })]);
  }
  await limiter.close();
  await Promise.race([everyoneGone, delay(LINGER_MILLIS, undefined, { ref: false })]);
  server.cutConnections();
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
