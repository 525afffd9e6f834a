import type { Cluster, Redis } from 'ioredis';

import { withinDeadline } from '../../common/deadline.js';

/** A replica's connections to Redis in any topology. Lost connections are always made again. */
export interface Connections {
  /**
   * For scripts and commands. Nothing is queued while Redis is unreachable: a call fails at once, and its
   * caller decides what that means.
   */
  readonly commands: Redis | Cluster;
  readonly subscriber: Subscriber;
  /** In a cluster all names of a call are in one slot, and messages stay on their shard. */
  readonly isCluster: boolean;

  /** The slot of a name in Redis; without a cluster the same for all names. */
  slotOf(name: string): number;
  /** An identifier of the primary of a name, as far as is known. */
  shardOf(name: string): string;
  /** The connection to a node, by the identifiers of `shardOf`, if it is known. */
  nodeAt(shard: string): Redis | undefined;
  /** A connection to each primary, by the identifiers of `shardOf`. */
  primaries(): ReadonlyMap<string, Redis>;
  /** Replaces a useless connection by a new one. */
  renew(shard: string): void;
  /** Renews the connection if nothing arrives on it, while another connection to the same server is answered. */
  renewIfDead(shard: string): Promise<void>;
  /** Looks the topology up again, if there is one. */
  refresh(): void;
  publish(channel: string, message: string): Promise<unknown>;
  /** Calls back whenever Redis becomes reachable. */
  onReady(callback: () => void): void;
  /** Why Redis, or a part of it, is unreachable, as far as is known. */
  lastError(): Error | undefined;
  /**
   * For how many milliseconds the address of Redis has refused each connection. 0 with sentinels and in a cluster,
   * since another server may take over at any time.
   */
  refusedMillis(): number;
  /** Closes the connections once all calls have been answered. */
  close(): Promise<void>;
}

/** The events of subscriptions. */
export interface SubscriberEvents {
  /** A subscription was made, or made again. Messages before it may be lost. Later ones arrive. */
  onSubscribed(channel: string): void;
  onMessage(channel: string, message: string): void;
}

/**
 * Subscriptions that are made again when their connection is. Messages are hints, and may be lost. Each
 * listener gets all events.
 */
export interface Subscriber {
  listen(events: SubscriberEvents): void;
  subscribe(channel: string): void;
  unsubscribe(channel: string): void;
}

/** Closes a connection once all its commands have been answered, or when that takes longer than `timeoutMillis`. */
export async function quit(
  client: { quit(): Promise<unknown>; disconnect(): void },
  timeoutMillis: number,
): Promise<void> {
  try {
    await withinDeadline(client.quit(), timeoutMillis);
  } catch {
    // Without a connection QUIT can't be sent.
    client.disconnect();
  }
}
