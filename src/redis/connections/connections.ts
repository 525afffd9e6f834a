import type { Cluster, Redis } from 'ioredis';

import type { Subscriber } from './subscriber.js';

/** A replica's connections to Redis in any topology. Lost connections are made again without end. */
export interface Connections {
  /**
   * For scripts and commands. Nothing is queued while Redis can't be reached: a call fails at once, and its
   * caller decides what that means.
   */
  readonly commands: Redis | Cluster;
  readonly subscriber: Subscriber;
  /** In a cluster one call can't touch names in different slots, and messages stay on their shard. */
  readonly isCluster: boolean;

  /** The slot of a name in Redis; the same for all where there is no cluster. */
  slotOf(name: string): number;
  /** An identifier of the primary that holds a name, as far as is known. */
  shardOf(name: string): string;
  /** A connection to each primary, by the identifiers of `shardOf`. */
  primaries(): ReadonlyMap<string, Redis>;
  /** Closes a connection that is of no use any more, and makes another. */
  renew(shard: string): void;
  /** Does so where nothing arrives on it any more, but on another one to the same server. */
  renewIfDead(shard: string): Promise<void>;
  /** Has the topology looked up again. Does nothing where there is none. */
  refresh(): void;
  publish(channel: string, message: string): Promise<unknown>;
  /** Calls back whenever Redis can be asked, again or for the first time. */
  onReady(callback: () => void): void;
  /** Whether Redis can be asked, as far as is known. */
  readonly isReady: boolean;
  /** Why Redis can't be asked, or a part of it, as far as is known. */
  lastError(): Error | undefined;
  /** Closes the connections once all calls have been answered. */
  close(): Promise<void>;
}
