import { getHeapStatistics } from 'node:v8';

import type { Logger } from 'pino';

import { systemClock } from '../common/clock.js';
import type { Settings } from '../config/settings.js';
import type { Limiter, Policies, StoreLimiter } from '../limiter/limiter.js';
import type { MemoryBounds } from '../limiter/memory/keys.js';
import { MemoryLimiter } from '../limiter/memory/memory-limiter.js';
import { memoryIn } from '../limiter/memory/memory-budget.js';
import { OutageLimiter } from '../limiter/outage/outage-limiter.js';
import { OutageLog } from '../limiter/outage/outage-log.js';
import { connect, waitUntilReady } from '../redis/connections/connect.js';
import { connectionSettingsFrom } from '../redis/connections/from-settings.js';
import { EvictionWatch } from '../redis/eviction-watch.js';
import { RedisLimiter } from '../redis/redis-limiter.js';
import type { OwnReports } from '../redis/replica-reports.js';
import type { StoreObserver } from '../redis/shared/store-observer.js';
import type { KeyPolicy } from '../rules/policy.js';

export type CreatedLimiter = Awaited<ReturnType<typeof createLimiter>>;

/**
 * Makes the limiter that the settings describe.
 * @throws SettingsError if a file in the settings can't be read
 */
export async function createLimiter(
  settings: Settings,
  rules: Policies<KeyPolicy>,
  replicaId: string,
  logger: Logger,
  observer: StoreObserver,
) {
  const urls = settings.REDIS_URL;
  const maxWaiters = settings.MAX_WAITERS;
  if (urls === undefined) {
    const bounds = { ...boundsOf(settings), maxWaiters };
    const limiter = new MemoryLimiter(rules, systemClock, bounds, observer);
    return {
      limiter,
      store: limiter,
      policyOf: (key: string) => limiter.policyOf(key),
      openReports: undefined,
      evictionPolicy: () => undefined,
    };
  }

  const name = `sluice:${replicaId}`;
  const connectionSettings = await connectionSettingsFrom(settings, urls, name, logger);
  const connections = connect(connectionSettings, logger);
  // Before its first connection to Redis a replica would fail checks without need.
  await waitUntilReady(connections, settings.STORE_TIMEOUT_MILLIS);
  const eviction = new EvictionWatch({
    connections,
    timeoutMillis: settings.STORE_TIMEOUT_MILLIS,
    clock: systemClock,
    logger,
  });
  if (connections.commands.status === 'ready') await eviction.look();
  const policyOf = (key: string): KeyPolicy => rules.current.policyOf(key);
  const limiter = new RedisLimiter({
    connections,
    limitsOf: policyOf,
    rulesLoadedAt: loadedAt(rules),
    keyPrefix: settings.KEY_PREFIX,
    replicaId,
    leaseMillis: settings.REPLICA_LEASE_MILLIS,
    database: connectionSettings.database,
    timeoutMillis: settings.STORE_TIMEOUT_MILLIS,
    // With a substitute for the store, one bound applies to both together.
    maxWaiters: settings.STORE_OUTAGE_POLICY === 'deny' ? maxWaiters : Infinity,
    maxIdsPerKey: settings.MAX_IDS_PER_KEY,
    maxHoldsPerKey: settings.MAX_HOLDS_PER_KEY,
    maxGroupsPerKey: settings.MAX_GROUPS_PER_KEY,
    clock: systemClock,
    logger,
    observer,
  });
  return {
    /** The limiter without what decides in an outage of its store. */
    store: limiter,
    limiter: withPolicy(settings, limiter, rules, logger),
    /** The policy of each key as of now. */
    policyOf,
    /** Shares reports with the other replicas; undefined if there are none. */
    openReports: (own: OwnReports) => limiter.openReports(own),
    /** The policy by which Redis may evict keys; undefined if it evicts none. */
    evictionPolicy: () => eviction.policy,
  };
}

/** @returns when the current rules came into use, as seen by the calls before and after the change */
function loadedAt(rules: Policies): () => number {
  let { current } = rules;
  let at = systemClock.now();
  return () => {
    if (rules.current !== current) {
      current = rules.current;
      at = systemClock.now();
    }
    return at;
  };
}

function boundsOf(settings: Settings): Omit<MemoryBounds, 'maxWaiters'> {
  return {
    maxKeys: settings.MAX_KEYS,
    maxIdsPerKey: settings.MAX_IDS_PER_KEY,
    maxHoldsPerKey: settings.MAX_HOLDS_PER_KEY,
    maxGroupsPerKey: settings.MAX_GROUPS_PER_KEY,
    maxBytes: memoryIn(
      getHeapStatistics().heap_size_limit,
      // The command line wins.
      [process.env.NODE_OPTIONS, ...process.execArgv].join(' '),
    ),
  };
}

function withPolicy(
  settings: Settings,
  limiter: StoreLimiter,
  rules: Policies<KeyPolicy>,
  logger: Logger,
): Limiter {
  const policy = settings.STORE_OUTAGE_POLICY;
  if (policy === 'deny') return limiter;
  const substitute =
    policy === 'allow' ? undefined : new MemoryLimiter(rules, systemClock, boundsOf(settings));
  return new OutageLimiter(
    limiter,
    substitute,
    new OutageLog(policy, systemClock, logger),
    systemClock,
    settings.MAX_WAITERS,
  );
}
