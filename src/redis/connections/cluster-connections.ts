import calculateSlot from 'cluster-key-slot';
import { Cluster, type Redis } from 'ioredis';
import type { Logger } from 'pino';

import {
  type ClientOptions,
  clientOptions,
  credentials,
  reconnectAfter,
} from './client-options.js';
import { lastErrorOf, logConnection } from './connection-log.js';
import {
  addressIn,
  type ConnectionSettings,
  REDIS_PORT,
  sharedCredentialsIn,
} from './connection-settings.js';
import type { Connections } from './connections.js';
import { quit } from './quit.js';
import { ShardedSubscriber } from './sharded-subscriber.js';
import { isDead, limitHandshake } from './silence.js';

/** How often the topology is looked up if nothing shows a change. */
const TOPOLOGY_INTERVAL_MILLIS = 5000;
/** A call to a moving slot is repeated at this interval, a few times. After that the caller decides. */
const MOVING_RETRY_MILLIS = 20;
const MAX_REDIRECTIONS = 5;
/** The shard of a slot that no known node serves. */
const NO_SHARD = 'none';

/** Connects to a Redis Cluster. */
export function connectToCluster(settings: ConnectionSettings, logger: Logger): Connections {
  const urls = settings.urls.map((url) => new URL(url));
  const redisOptions: ClientOptions = {
    ...clientOptions(settings),
    ...credentials(settings, sharedCredentialsIn(urls)),
  };
  const commands = logConnection(
    new Cluster(
      urls.map((url) => addressIn(url, REDIS_PORT)),
      {
        // Nodes keep the names that they announce, since certificates may be checked against them.
        dnsLookup: (address, callback) => {
          callback(null, address);
        },
        redisOptions,
        enableOfflineQueue: false,
        clusterRetryStrategy: reconnectAfter,
        slotsRefreshInterval: TOPOLOGY_INTERVAL_MILLIS,
        slotsRefreshTimeout: settings.timeoutMillis,
        maxRedirections: MAX_REDIRECTIONS,
        retryDelayOnTryAgain: MOVING_RETRY_MILLIS,
        // The callers retry: they know what a call does, and how long it may take.
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
      },
    ),
    'cluster',
    logger,
  );
  const shardOf = (name: string): string => commands.slots[calculateSlot(name)]?.[0] ?? NO_SHARD;
  /** The last ones that were looked up. Looking through all nodes for each call would take too long. */
  const lookedUp = new Map<string, Redis>();
  const nodeAt = (shard: string): Redis | undefined => {
    const known = lookedUp.get(shard);
    if (known && known.status !== 'end') return known;
    const node = commands.nodes('all').find((each) => shardAt(each) === shard);
    if (node) lookedUp.set(shard, node);
    else lookedUp.delete(shard);
    return node;
  };
  const subscriber = new ShardedSubscriber(
    { shardOf, nodeAt, refresh: () => commands.refreshSlotsCache() },
    { ...redisOptions, enableOfflineQueue: false, autoResubscribe: false, readOnly: false },
    settings.timeoutMillis,
    logger,
  );
  commands.on('refresh', () => {
    // Nodes that are gone would stay in it.
    lookedUp.clear();
    subscriber.assign();
  });
  commands.on('+node', (node: Redis) => limitHandshake(node, 2 * settings.timeoutMillis));
  const renew = (shard: string): void => {
    nodeAt(shard)?.disconnect();
    commands.refreshSlotsCache();
  };
  return {
    commands,
    subscriber,
    isCluster: true,
    slotOf: calculateSlot,
    shardOf,
    nodeAt,
    primaries: () => new Map(commands.nodes('master').map((node) => [shardAt(node), node])),
    renew,
    renewIfDead: async (shard) => {
      // Its slots may have another node by now.
      commands.refreshSlotsCache();
      const node = nodeAt(shard);
      if (node && (await isDead(node, settings.timeoutMillis))) renew(shard);
    },
    refresh: () => {
      commands.refreshSlotsCache();
    },
    publish: (channel, message) => commands.spublish(channel, message),
    onReady: (callback) => {
      commands.on('ready', callback);
    },
    get isReady() {
      return commands.status === 'ready';
    },
    lastError: lastErrorOf(commands),
    refusedMillis: () => 0,
    close: async () => {
      subscriber.close();
      settings.stopWatching?.();
      await quit(commands, 2 * settings.timeoutMillis);
    },
  };
}

/** As ioredis names the owner of a slot. */
function shardAt({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}
