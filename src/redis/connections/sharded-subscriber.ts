import { Redis } from 'ioredis';
import type { Logger } from 'pino';

import type { ClientOptions } from './client-options.js';
import { Heartbeat } from './heartbeat.js';
import { limitHandshake } from './silence.js';
import type { Subscriber, SubscriberEvents } from './subscriber.js';

/** A subscriber's view of a cluster. */
export interface Topology {
  /** The primary of a name. */
  shardOf(name: string): string;
  /** A connection to a node, whose address a new connection can use. */
  nodeAt(shard: string): Redis | undefined;
  /** Looks the topology up again. */
  refresh(): void;
}

/** The connection to a primary that has at least one channel, or will have one. */
interface Connection {
  readonly client: Redis;
  readonly heartbeat: Heartbeat;
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
  readonly #connections = new Map<string, Connection>();
  readonly #listeners: SubscriberEvents[] = [];
  #isClosed = false;

  constructor(
    private readonly topology: Topology,
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
    this.#connections.set(shard, { client, heartbeat });
    client.on('smessage', (channel: string, message: string) => {
      for (const listener of this.#listeners) listener.onMessage(channel, message);
    });
    client.on('ready', () => {
      for (const [channel, at] of this.#channels) {
        if (at === shard) void this.#subscribe(client, channel, shard);
      }
    });
    client.on('error', (error: Error) => {
      this.logger.debug({ err: error, shard }, 'subscriber connection failed');
    });
    // The callers report a node that stays down. Here it matters that its slots have new owners.
    client.on('close', () => {
      if (this.#clientOf(shard) === client) this.topology.refresh();
    });
    // The server has ended subscriptions because their slots have moved.
    client.on('moved', () => {
      this.#doubt(shard);
    });
    return client;
  }

  #disconnect(shard: string, { client, heartbeat }: Connection): void {
    this.#connections.delete(shard);
    heartbeat.stop();
    client.disconnect();
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
    client.sunsubscribe(channel).catch((error: unknown) => {
      this.logger.debug({ err: error, channel }, 'unsubscribe failed');
    });
  }
}
