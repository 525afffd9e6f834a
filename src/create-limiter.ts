import type { Logger } from 'pino';

import { type Clock, systemClock } from './clock.js';
import { readNamedFile } from './config/named-file.js';
import type { Settings } from './config/settings.js';
import type { Limiter, Limits, StoreLimiter } from './limiter/limiter.js';
import { MemoryLimiter } from './limiter/memory/memory-limiter.js';
import { OutageLimiter } from './limiter/outage/outage-limiter.js';
import { OutageLog } from './limiter/outage/outage-log.js';
import { allowAll, decideLocally } from './limiter/outage/substitute.js';
import type { ConnectionSettings } from './redis/connections/connection-settings.js';
import { connect, waitUntilReady } from './redis/connections/connections.js';
import { RedisLimiter } from './redis/redis-limiter.js';
import type { StoreObserver } from './redis/store-observer.js';

/**
 * The limiter that the settings ask for.
 * @throws SettingsError where a file that they name can't be read
 */
export async function createLimiter(
  settings: Settings,
  replicaId: string,
  logger: Logger,
  observer: StoreObserver,
): Promise<Limiter> {
  const limits: Limits = {
    windowMillis: settings.WINDOW_MILLIS,
    maxRequests: settings.MAX_REQUESTS,
    maxRequestsInQueue: settings.MAX_REQUESTS_IN_QUEUE,
  };
  const urls = settings.REDIS_URL;
  const maxWaiters = settings.MAX_WAITERS;
  if (urls === undefined) return new MemoryLimiter(limits, systemClock, maxWaiters);

  const connectionSettings = toConnectionSettings(settings, urls, replicaId);
  const connections = connect(connectionSettings, logger);
  // Serving before the first connection would turn the first callers away for nothing.
  await waitUntilReady(connections, settings.STORE_TIMEOUT_MILLIS);
  const limiter = new RedisLimiter({
    connections,
    limits,
    keyPrefix: settings.KEY_PREFIX,
    replicaId,
    leaseMillis: settings.REPLICA_LEASE_MILLIS,
    database: connectionSettings.database,
    timeoutMillis: settings.STORE_TIMEOUT_MILLIS,
    // Where another decides in the store's place, the bound is one over both.
    maxWaiters: settings.STORE_OUTAGE_POLICY === 'deny' ? maxWaiters : Infinity,
    clock: systemClock,
    logger,
    observer,
  });
  return withPolicy(settings, limiter, limits, systemClock, logger);
}

function withPolicy(
  settings: Pick<Settings, 'STORE_OUTAGE_POLICY' | 'MAX_WAITERS'>,
  limiter: StoreLimiter,
  limits: Limits,
  clock: Clock,
  logger: Logger,
): Limiter {
  const policy = settings.STORE_OUTAGE_POLICY;
  if (policy === 'deny') return limiter;
  const substitute =
    policy === 'allow' ? allowAll : decideLocally(new MemoryLimiter(limits, clock));
  return new OutageLimiter(
    limiter,
    substitute,
    new OutageLog(policy, clock, logger),
    settings.MAX_WAITERS,
  );
}

function toConnectionSettings(
  settings: Settings,
  urls: readonly string[],
  replicaId: string,
): ConnectionSettings {
  const isTls = urls[0]?.startsWith('rediss:') === true;
  const databaseInUrl = Number(new URL(urls[0] ?? '').pathname.slice(1));
  return {
    mode: settings.REDIS_MODE,
    urls,
    sentinelMaster: settings.REDIS_SENTINEL_MASTER,
    username: settings.REDIS_USERNAME,
    password: settings.REDIS_PASSWORD,
    sentinelUsername: settings.REDIS_SENTINEL_USERNAME,
    sentinelPassword: settings.REDIS_SENTINEL_PASSWORD,
    database: settings.REDIS_DATABASE ?? databaseInUrl,
    tls: isTls
      ? {
          ca: read(settings, 'REDIS_TLS_CA_FILE'),
          cert: read(settings, 'REDIS_TLS_CERT_FILE'),
          key: read(settings, 'REDIS_TLS_KEY_FILE'),
          servername: settings.REDIS_TLS_SERVER_NAME,
        }
      : undefined,
    timeoutMillis: settings.STORE_TIMEOUT_MILLIS,
    name: `sluice:${replicaId}`,
  };
}

function read(
  settings: Settings,
  name: 'REDIS_TLS_CA_FILE' | 'REDIS_TLS_CERT_FILE' | 'REDIS_TLS_KEY_FILE',
): string | undefined {
  const path = settings[name];
  return path === undefined ? undefined : readNamedFile(name, path);
}
