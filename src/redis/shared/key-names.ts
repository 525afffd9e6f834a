import type { LimitInForce } from '../../limiter/limits.js';
import type { QueueList } from '../../limiter/queue-order.js';
import type { StoredName } from '../../limiter/limiter.js';
import { kindOf } from '../../limiter/kinds/kinds.js';

/** The most names to try in the search for one on each shard. The search may miss shards with few slots. */
const SHARD_SEARCH_LIMIT = 1000;

/** The names in Redis of everything that belongs to one limiter key. Most checks need only the first two. */
export class KeyNames {
  /**
   * @param key the limiter key itself
   * @param state the name of its state, with which all other names begin
   * @param wakeSuffix turns the name of the state into the name of the channel
   */
  constructor(
    readonly key: string,
    readonly state: string,
    private readonly wakeSuffix: string,
  ) {}

  /** The ids approved in the current window. */
  get requests(): string {
    return `${this.state}:requests`;
  }

  /**
   * What approvals take of a limit: of the key's own limit with fixed windows, those that have not exactly one hit; of one
   * without fixed windows, in two generations, 0 and 1.
   * @param limit its name; undefined for the key's own
   */
  took(generation: 0 | 1, limit?: string): string {
    const name = `${this.state}:took:${generation}`;
    return limit === undefined ? name : `${name}:${limit}`;
  }

  /** The waiters: in the order of their arrival, or by their lists, if any has a lane or a group. */
  get queue(): string {
    return `${this.state}:queue`;
  }

  /** Every request of which more is known than that it is approved: it waits, is held, or its caller has chosen its id. */
  get records(): string {
    return `${this.state}:records`;
  }

  /** The approvals that are held or unclaimed, by the time when they lapse. */
  get lapses(): string {
    return `${this.state}:lapses`;
  }

  /** The requests that are over and whose callers have chosen their ids, by the time until which they are remembered. */
  get ends(): string {
    return `${this.state}:ends`;
  }

  /** The lists of the queue whose waiters have lanes or groups, by the turns of their heads, or by when groups may go on. */
  headsOf(kind: QueueList['kind'] | 'stopped'): string {
    return `${this.state}:heads:${kind}`;
  }

  /** What groups have of the limits that each has to itself. */
  get groups(): string {
    return `${this.state}:groups`;
  }

  /** The same groups, by when they are idle. */
  get groupsByIdle(): string {
    return `${this.groups}:idle`;
  }

  /** The replicas of the waiters, with their leases. */
  get replicas(): string {
    return `${this.state}:replicas`;
  }

  /** The ids approved in windows that have ended, by generation. */
  get pastRequests(): readonly string[] {
    const { requests } = this;
    return [`${requests}:1`, `${requests}:2`, `${requests}:3`];
  }

  /**
   * What replicas have decided in a minute, while somebody looks at the key in the dashboard.
   * @param minute the number of minutes from 1970 to its begin
   */
  history(minute: number): string {
    return `${this.state}:history:${minute}`;
  }

  /** The pub/sub channel of wakes. */
  get wakeChannel(): string {
    return this.state + this.wakeSuffix;
  }

  /** The mutex of the window leader. redis-semaphore puts `mutex:` before it. */
  get leader(): string {
    return `${this.state}:leader`;
  }
}

/**
 * The names of a key with these limits and what is stored under each, for people who look into Redis. Those of the
 * dashboard's own history are not among them.
 */
export function storedNames(
  names: KeyNames,
  limits: readonly Pick<LimitInForce, 'name' | 'algorithm' | 'perGroup'>[],
): StoredName[] {
  const shared = limits.filter(({ perGroup }) => !perGroup);
  const ofGroups: StoredName[] = [
    { content: 'groups with what counts of their limits', name: names.groups },
    { content: 'groups by when nothing counts', name: names.groupsByIdle },
    { content: 'groups that are stopped', name: names.headsOf('stopped') },
  ];
  return [
    { content: 'state', name: names.state },
    { content: 'approved request ids', name: names.requests },
    ...shared.flatMap(({ name, algorithm }) => {
      const content = name === undefined ? 'what approvals take' : `approvals in the limit ${name}`;
      const generations = ([0, 1] as const).slice(0, kindOf(algorithm).storedNames);
      return generations.map((each) => ({ content, name: names.took(each, name) }));
    }),
    ...names.pastRequests.map((name) => ({ content: 'ids of earlier windows', name })),
    { content: 'queue', name: names.queue },
    { content: 'lanes with waiters', name: names.headsOf('lane') },
    { content: 'groups with waiters', name: names.headsOf('group') },
    ...(shared.length < limits.length ? ofGroups : []),
    { content: 'requests that wait, are held, or have ids of their callers', name: names.records },
    { content: 'held approvals by the time of their lapse', name: names.lapses },
    { content: 'remembered requests by the end of their memory', name: names.ends },
    { content: 'replicas and leases', name: names.replicas },
    { content: 'window leader', name: `mutex:${names.leader}` },
    { content: 'channel of wakes', name: names.wakeChannel },
  ];
}

/** A name on the shard of `name` under which nothing is stored. A call for it shows whether the shard answers. */
export function probeName(name: string): string {
  return `${name}:probe`;
}

/**
 * Builds all names in Redis. No other file does.
 *
 * All names of a key share one hash tag, so that Redis Cluster keeps them in one slot and a script
 * may touch them together: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 * A tag ends at the first `}`, so braces of the key itself are percent-encoded, and with them `%`.
 */
export class KeyNaming {
  readonly #wakeSuffix: string;

  /** @param database the number of the Redis database: channels are shared by all databases */
  constructor(
    private readonly prefix: string,
    database = 0,
  ) {
    this.#wakeSuffix = database === 0 ? ':wake' : `:wake:${database}`;
  }

  /**
   * How `lua/lib/wake.lua` sends wakes: the command, and the suffix that turns the name of the state into the name of
   * the channel. In a cluster, messages stay on the shard of their channel.
   */
  wakeArgument({ isCluster }: { readonly isCluster: boolean }): string {
    return `${isCluster ? 'SPUBLISH' : 'PUBLISH'} ${this.#wakeSuffix}`;
  }

  /** The reports of replicas, and the channel of questions for them. No key of a limiter is empty, so these are the names of no key. */
  get reports(): { readonly name: string; readonly channel: string } {
    const tag = `${this.prefix}{}`;
    return { name: `${tag}:reports`, channel: tag + this.#wakeSuffix };
  }

  namesOf(key: string): KeyNames {
    const tag = key.replace(/[{}%]/g, encodeURIComponent);
    return new KeyNames(key, `${this.prefix}{${tag}}`, this.#wakeSuffix);
  }

  /**
   * For each shard, the name that the state of some key would have there.
   * @param shardOf the shard of a name
   */
  namesOnEachShard(shards: number, shardOf: (name: string) => string): string[] {
    const names = new Map<string, string>();
    for (let i = 0; names.size < Math.max(1, shards) && i < SHARD_SEARCH_LIMIT; i += 1) {
      const { state } = this.namesOf(String(i));
      const shard = shardOf(state);
      if (!names.has(shard)) names.set(shard, state);
    }
    return [...names.values()];
  }

  /** A pattern for SCAN that matches the state of every key, and none of its other names. */
  get statePattern(): string {
    return `${this.prefix.replace(/[*?[\]\\^-]/g, '\\$&')}{*}`;
  }

  /** The limiter key whose state has this name. */
  keyOf(state: string): string {
    const encoded = state.slice(this.prefix.length + 1, -1);
    return encoded.replace(/%7B|%7D|%25/g, decodeURIComponent);
  }
}
