/** The names in Redis of everything that belongs to one limiter key. */
export interface KeyNames {
  readonly state: string;
  readonly requests: string;
  readonly queue: string;
  readonly replicas: string;
  /** The pub/sub channel on which those approved from the queue are made known. */
  readonly wakeChannel: string;
  /** The mutex of the replica that ends the windows; redis-semaphore puts `mutex:` before it. */
  readonly driver: string;
}

/**
 * The only place that builds names.
 *
 * All names of a key share one hash tag, so that Redis Cluster keeps them in one slot and a script
 * may touch them together: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 * A tag ends at the first `}`, so braces of the key itself are percent-encoded, and with them `%`.
 */
export class KeyNaming {
  constructor(private readonly prefix: string) {}

  namesOf(key: string): KeyNames {
    const state = `${this.prefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}`;
    return {
      state,
      requests: `${state}:requests`,
      queue: `${state}:queue`,
      replicas: `${state}:replicas`,
      wakeChannel: `${state}:wake`,
      driver: `${state}:driver`,
    };
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
