import { type ClusterNode, covers, isHealthy, selfOf, viewOf } from './cluster-node.js';
import { freePort } from './free-port.js';
import { startRedisProcess, stopAll } from './redis-process.js';
import { limiterRules } from './redis-user.js';
import { until } from './until.js';

const SLOTS = 16_384;
/** How long a node must be silent before the others promote its replica. */
const NODE_TIMEOUT_MILLIS = 1_500;
/**
 * How long a node holds no other election after its own. If it is asked to in the first half of this time,
 * Redis 7.0 counts the old votes again, and accepts writes as a primary that the others overrule at once:
 * `clusterHandleSlaveFailover` in its `cluster.c`.
 */
const BETWEEN_ELECTIONS_MILLIS = 4 * NODE_TIMEOUT_MILLIS;

type MeetableNode = ClusterNode & { readonly busPort: number };

export interface ClusterSize {
  readonly primaries: number;
  readonly replicasPerPrimary: number;
}

/** Starts a cluster with its slots spread evenly and resolves when it has settled. */
export async function startRedisCluster({
  primaries,
  replicasPerPrimary,
}: ClusterSize): Promise<RedisCluster> {
  const count = primaries * (1 + replicasPerPrimary);
  const nodes = await Promise.all(Array.from({ length: count }, startNode));
  const owners = nodes.slice(0, primaries);

  for (const [i, node] of nodes.entries()) await node.command('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
  for (const [i, node] of owners.entries()) {
    const first = Math.floor((i * SLOTS) / primaries);
    const last = Math.floor(((i + 1) * SLOTS) / primaries) - 1;
    await node.command('CLUSTER', 'ADDSLOTSRANGE', first, last);
  }
  await introduce(nodes);
  for (const [i, node] of nodes.slice(primaries).entries()) {
    await node.command('CLUSTER', 'REPLICATE', owners[i % primaries]!.id);
  }
  const cluster = new RedisCluster(nodes);
  await cluster.settled();
  return cluster;
}

/** Resolves when all nodes know each other. */
async function introduce(nodes: readonly MeetableNode[]): Promise<void> {
  let metAt = -Infinity;
  await until(async () => {
    const views = await Promise.all(nodes.map(viewOf));
    if (views.every((view) => nodes.every(({ id }) => view.some((entry) => entry.id === id)))) {
      return true;
    }
    // A node gives up a handshake that takes longer than this, and no node begins it again.
    if (performance.now() - metAt > NODE_TIMEOUT_MILLIS) {
      metAt = performance.now();
      for (const { port, busPort } of nodes.slice(1)) {
        await nodes[0]!.command('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
      }
    }
    return false;
  });
}

async function startNode(): Promise<MeetableNode> {
  let busPort = 0;
  const node = await startRedisProcess({
    userRules: limiterRules('cluster'),
    configure: async () => {
      busPort = await freePort();
      return [
        'cluster-enabled yes',
        // The default is the port plus 10,000, which may be taken.
        `cluster-port ${busPort}`,
        `cluster-node-timeout ${NODE_TIMEOUT_MILLIS}`,
        'cluster-require-full-coverage no',
        'cluster-allow-replica-migration no',
        'repl-diskless-sync-delay 0',
      ];
    },
  });
  return Object.assign(node, { id: (await node.command('CLUSTER', 'MYID')) as string, busPort });
}

/** A Redis Cluster on this machine. Its nodes can be killed, suspended and restarted one by one. */
export class RedisCluster {
  readonly #demotedAt = new Map<ClusterNode, number>();
  #nodes: readonly MeetableNode[];

  constructor(nodes: readonly MeetableNode[]) {
    this.#nodes = nodes;
  }

  get nodes(): readonly ClusterNode[] {
    return this.#nodes;
  }

  /** The settings of a service that uses it. */
  get settings(): { REDIS_MODE: string; REDIS_URL: string } {
    return { REDIS_MODE: 'cluster', REDIS_URL: this.nodes.map(({ url }) => url).join() };
  }

  /** The slot of a Redis key by Redis's own computation, including hash tags. */
  async slotOf(name: string): Promise<number> {
    return (await this.#responsive[0]!.command('CLUSTER', 'KEYSLOT', name)) as number;
  }

  /**
   * The responsive node that owns the slot of a Redis key. If its primary has been killed or suspended, this
   * waits until another node is promoted.
   */
  async primaryOf(name: string): Promise<ClusterNode> {
    const slot = await this.slotOf(name);
    return until(() => this.#ownerOf(slot));
  }

  /** The responsive nodes that are primaries. */
  async primaries(): Promise<ClusterNode[]> {
    const selves = await this.#selves();
    return selves.filter(({ self }) => self.isPrimary).map(({ node }) => node);
  }

  /** The responsive replicas of a node. */
  async replicasOf(primary: ClusterNode): Promise<ClusterNode[]> {
    const selves = await this.#selves();
    return selves.filter(({ self }) => self.primaryId === primary.id).map(({ node }) => node);
  }

  /**
   * Waits until the responsive nodes agree on every node's role and slots, every slot is owned by one
   * of them, and every replica copies from its primary.
   */
  async settled(): Promise<void> {
    await until(async () => {
      const nodes = this.#responsive;
      const views = await Promise.all(nodes.map(viewOf));
      const [first, ...others] = views.map((view) =>
        view
          .map(({ id, isPrimary, primaryId, slots }) => [id, isPrimary, primaryId, slots].join())
          .sort()
          .join('\n'),
      );
      const owners = views[0]!.filter(({ slots }) => slots !== '');
      return (
        others.every((other) => other === first) &&
        owners.every((owner) => nodes.some(({ id }) => id === owner.id)) &&
        (await Promise.all(nodes.map(isHealthy))).every(Boolean)
      );
    });
  }

  /**
   * Promotes a replica, and resolves when the cluster has settled on it. A node that was demoted by another
   * failover is promoted some seconds later at the earliest.
   */
  async failover(replica: ClusterNode): Promise<void> {
    const demotedAt = this.#demotedAt.get(replica) ?? -Infinity;
    await until(() => Date.now() - demotedAt > BETWEEN_ELECTIONS_MILLIS);
    const { primaryId } = await selfOf(replica);
    await promote(replica);
    await this.settled();
    const primary = this.nodes.find(({ id }) => id === primaryId)!;
    this.#demotedAt.set(primary, Date.now());
  }

  /** Adds a primary without data and slots, and resolves when the cluster has settled on it. */
  async join(): Promise<ClusterNode> {
    const node = await startNode();
    const nodes = [...this.#nodes, node];
    await introduce(nodes);
    this.#nodes = nodes;
    await this.settled();
    return node;
  }

  /** Moves a slot with its keys to another primary, and resolves when the cluster has settled on it. */
  async migrateSlot(slot: number, target: ClusterNode, steps: MigrationSteps = {}): Promise<void> {
    const source = await until(() => this.#ownerOf(slot));
    await migrateSlot({ slot, source, target, primaries: await this.primaries(), ...steps });
    await this.settled();
  }

  stop(): Promise<void> {
    return stopAll(this.nodes);
  }

  get #responsive(): ClusterNode[] {
    return this.nodes.filter(({ responsive }) => responsive);
  }

  async #ownerOf(slot: number): Promise<ClusterNode | undefined> {
    const claims = (await this.#selves()).filter(({ self }) => covers(self.slots, slot));
    // A node that was primary before it was suspended may not know of the failover yet.
    claims.sort((a, b) => b.self.configEpoch - a.self.configEpoch);
    return claims[0]?.node;
  }

  async #selves() {
    return Promise.all(this.#responsive.map(async (node) => ({ node, self: await selfOf(node) })));
  }
}

/** The timeout of `redis-cli --cluster reshard`, long enough for a slow node. */
const MIGRATE_TIMEOUT_MILLIS = 60_000;

interface MigrationSteps {
  /**
   * Called before the first key of the slot has moved, and again after each step, with the number of keys
   * that have moved so far.
   */
  readonly betweenSteps?: (moved: number) => Promise<void> | void;
}

export interface SlotMigration extends MigrationSteps {
  readonly slot: number;
  readonly source: ClusterNode;
  readonly target: ClusterNode;
  /** All primaries of the cluster, including source and target. */
  readonly primaries: readonly ClusterNode[];
}

/**
 * Moves a slot and its keys in the same order as `redis-cli --cluster reshard`.
 * https://redis.io/docs/latest/commands/cluster-setslot/#redis-cluster-live-resharding-explained
 */
async function migrateSlot(migration: SlotMigration): Promise<void> {
  const { slot, source, target, primaries, betweenSteps } = migration;
  await target.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id);
  await source.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id);
  for (let moved = 0; ;) {
    await betweenSteps?.(moved);
    const keys = (await source.command('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
    if (keys.length === 0) break;
    const address = ['127.0.0.1', target.port, ''] as const;
    await source.command('MIGRATE', ...address, 0, MIGRATE_TIMEOUT_MILLIS, 'KEYS', ...keys);
    moved += keys.length;
  }
  // The target first: if the source came first and failed then, the slot would have no owner.
  const others = primaries.filter((node) => node !== source && node !== target);
  for (const node of [target, source, ...others]) {
    await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
  }
}

/** How long Redis tries a requested failover before it gives up. */
const FAILOVER_TIMEOUT_MILLIS = 5_000;

/** Promotes a replica, and resolves when it reports that it is a primary. */
async function promote(replica: ClusterNode): Promise<void> {
  const epochBefore = (await selfOf(replica)).configEpoch;
  const ask = () => replica.command('CLUSTER', 'FAILOVER');
  await ask();
  let askedAt = Date.now();
  await until(async () => {
    const { isPrimary, configEpoch } = await selfOf(replica);
    // Without a new epoch, the other nodes would soon make it a replica again.
    if (isPrimary && configEpoch > epochBefore) return true;
    if (!isPrimary && Date.now() - askedAt > FAILOVER_TIMEOUT_MILLIS) {
      // Other primaries do not vote soon after another failover.
      await ask();
      askedAt = Date.now();
    }
    return false;
  });
}
