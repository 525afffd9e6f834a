import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';

import { lastErrorOf, logConnection } from './connection-log.js';
import {
  addressIn,
  type ClientOptions,
  clientOptions,
  type ConnectionSettings,
  credentials,
  reconnectAfter,
  REDIS_PORT,
  sharedCredentialsIn,
} from './connection-settings.js';
import { type Connections, quit, type Subscriber, type SubscriberEvents } from './connections.js';
import { TOPOLOGY_INTERVAL_MILLIS } from '../shared/losses.js';
import { Heartbeat, isDead, limitHandshake } from './silence.js';

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
        dnsLookup: (address, callback) => callback(null, address),
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
    refresh: () => commands.refreshSlotsCache(),
    publish: (channel, message) => commands.spublish(channel, message),
    onReady: (callback) => {
      commands.on('ready', callback);
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

/**
 * Sharded subscriptions: a connection to each primary that has a channel, so that messages stay on
 * their shard. https://redis.io/docs/latest/develop/pubsub/#sharded-pubsub
 *
 * ioredis has sharded subscriptions, but they do not report when a subscription was made again, and they compare the
 * whole table of 16,384 slots every few seconds.
 */
export class ShardedSubscriber implements Subscriber {
  /** The shard on which each channel is or will be subscribed; undefined if no primary is known. */
  readonly #channels = new Map<string, string | undefined>();
  /** The connections to the primaries that have at least one channel, or will have one. */
  readonly #connections = new Map<string, Heartbeat>();
  readonly #listeners: SubscriberEvents[] = [];
  #isClosed = false;

  constructor(
    private readonly topology: Pick<Connections, 'shardOf' | 'nodeAt' | 'refresh'>,
    private readonly options: ClientOptions,
    private readonly timeoutMillis: number,
    private readonly logger: Logger,
  ) {}

  listen(events: SubscriberEvents): void {
    this.#listeners.push(events);
  }

  subscribe(channel: string): void {
    this.#channels.set(channel, undefined);
    this.#assign(channel);
  }

  unsubscribe(channel: string): void {
    const shard = this.#channels.get(channel);
    this.#channels.delete(channel);
    this.#leave(channel, shard);
  }

  /** Brings every channel to its primary of now. */
  assign(): void {
    if (this.#isClosed) return;
    for (const channel of this.#channels.keys()) this.#assign(channel);
    const used = new Set(this.#channels.values());
    for (const [shard, connection] of this.#connections) {
      if (!used.has(shard)) this.#disconnect(shard, connection);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#channels.clear();
    for (const [shard, connection] of this.#connections) this.#disconnect(shard, connection);
  }

  #assign(channel: string): void {
    const before = this.#channels.get(channel);
    const shard = this.topology.shardOf(channel);
    if (shard === before) return;
    const client = this.#clientOf(shard) ?? this.#connect(shard);
    // The channel is assigned again when the topology is known.
    if (!client) return;
    this.#leave(channel, before);
    this.#channels.set(channel, shard);
    if (client.status === 'ready') void this.#subscribe(client, channel, shard);
  }

  #connect(shard: string): Redis | undefined {
    const node = this.topology.nodeAt(shard);
    if (!node || this.#isClosed) return undefined;
    const { host, port } = node.options;
    const client = limitHandshake(
      new Redis({
        ...this.options,
        ...(host !== undefined && { host }),
        ...(port !== undefined && { port }),
      }),
      2 * this.timeoutMillis,
    );
    const heartbeat = new Heartbeat(client, this.timeoutMillis, () => true, this.logger);
    this.#connections.set(shard, heartbeat);
    client.on('smessage', (channel: string, message: string) => {
      for (const listener of this.#listeners) listener.onMessage(channel, message);
    });
    client.on('ready', () => {
      for (const [channel, at] of this.#channels) {
        if (at === shard) void this.#subscribe(client, channel, shard);
      }
    });
    client.on('error', (error: Error) =>
      this.logger.debug({ err: error, shard }, 'subscriber connection failed'),
    );
    // The callers report a node that stays down. Here it matters that its slots have new owners.
    client.on('close', () => {
      if (this.#clientOf(shard) === client) this.topology.refresh();
    });
    // The server has ended subscriptions because their slots have moved.
    client.on('moved', () => this.#doubt(shard));
    return client;
  }

  #disconnect(shard: string, connection: Heartbeat): void {
    this.#connections.delete(shard);
    connection.stop();
    connection.client.disconnect();
  }

  #clientOf(shard: string): Redis | undefined {
    return this.#connections.get(shard)?.client;
  }

  async #subscribe(client: Redis, channel: string, shard: string): Promise<void> {
    try {
      await client.ssubscribe(channel);
    } catch (error) {
      this.logger.debug({ err: error, channel }, 'subscribe failed');
      // The next look-up of the topology tries again.
      if (this.#channels.get(channel) === shard) this.#channels.set(channel, undefined);
      return;
    }
    if (this.#channels.get(channel) !== shard) return;
    for (const listener of this.#listeners) listener.onSubscribed(channel);
  }

  /** Assigns all channels of a shard again: it is not known which of them are still subscribed. */
  #doubt(shard: string): void {
    for (const [channel, at] of this.#channels) {
      if (at === shard) this.#channels.set(channel, undefined);
    }
    this.topology.refresh();
  }

  #leave(channel: string, shard: string | undefined): void {
    const client = shard === undefined ? undefined : this.#clientOf(shard);
    if (client?.status !== 'ready') return;
    client
      .sunsubscribe(channel)
      .catch((error: unknown) => this.logger.debug({ err: error, channel }, 'unsubscribe failed'));
  }
}
