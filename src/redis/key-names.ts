import type { Connections } from './connections/connections.js';

/** So many names are tried to find one on each shard; shards of few slots may be missed. */
const SHARD_SEARCH_LIMIT = 1000;

/** The names in Redis of everything that belongs to one limiter key. */
export interface KeyNames {
  readonly state: string;
  /** The ids approved in the current window. */
  readonly requests: string;
  /** Those who wait, first come first. */
  readonly queue: string;
  /** Which entries of the queue still wait. */
  readonly waiting: string;
  /** The replicas of those who wait, with their leases. */
  readonly replicas: string;
  /** The ids approved in windows that have ended, by turns. */
  readonly pastRequests: readonly string[];
  /** The pub/sub channel on which those approved from the queue are made known. */
  readonly wakeChannel: string;
  /** The mutex of the replica that ends the windows; redis-semaphore puts `mutex:` before it. */
  readonly leader: string;
}

/** A name that nothing is ever kept under, on the shard of `name`: asked for to see whether it answers. */
export function probeName(name: string): string {
  return `${name}:probe`;
}

/**
 * Builds all names in Redis; this file is the only place that does.
 *
 * All names of a key share one hash tag, so that Redis Cluster keeps them in one slot and a script
 * may touch them together: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 * A tag ends at the first `}`, so braces of the key itself are percent-encoded, and with them `%`.
 */
export class KeyNaming {
  readonly #wakeSuffix: string;

  /** @param database the number of the Redis database, of which channels know nothing by themselves */
  constructor(
    private readonly prefix: string,
    database = 0,
  ) {
    this.#wakeSuffix = database === 0 ? ':wake' : `:wake:${database}`;
  }

  /**
   * How scripts send wakes, for `lua/lib/wake.lua`: the command, and what the channel's name has after that
   * of the state. In a cluster, messages stay on the shard of their channel.
   */
  wakeArgument({ isCluster }: Pick<Connections, 'isCluster'>): string {
    return `${isCluster ? 'SPUBLISH' : 'PUBLISH'} ${this.#wakeSuffix}`;
  }

  namesOf(key: string): KeyNames {
    const state = `${this.prefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}`;
    return {
      state,
      requests: `${state}:requests`,
      queue: `${state}:queue`,
      waiting: `${state}:waiting`,
      replicas: `${state}:replicas`,
      pastRequests: [`${state}:requests:1`, `${state}:requests:2`, `${state}:requests:3`],
      wakeChannel: state + this.#wakeSuffix,
      leader: `${state}:leader`,
    };
  }

  /**
   * For each shard, the name that the state of some key would have there.
   * @param topology of the store: its shards, and which of them holds a name
   */
  namesOnEachShard({ primaries, shardOf }: Pick<Connections, 'primaries' | 'shardOf'>): string[] {
    const names = new Map<string, string>();
    const shards = Math.max(1, primaries().length);
    for (let i = 0; names.size < shards && i < SHARD_SEARCH_LIMIT; i += 1) {
      const { state } = this.namesOf(String(i));
      const shard = shardOf(state);
      if (!names.has(shard)) names.set(shard, state);
    }
    return [...names.values()];
  }

  /** A pattern for SCAN that matches the state of every key, and nothing else of theirs. */
  get statePattern(): string {
    return `${this.prefix.replace(/[*?[\]\\^-]/g, '\\$&')}{*}`;
  }

  /** The limiter key whose state has this name. */
  keyOf(state: string): string {
    const encoded = state.slice(this.prefix.length + 1, -1);
    return encoded.replace(/%7B|%7D|%25/g, decodeURIComponent);
  }
}
