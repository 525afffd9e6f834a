import { isHealthy } from '../../../cluster-node.js';
import { startRedisCluster } from '../../../redis-cluster.js';
import { type RedisProcess, startRedisProcess } from '../../../redis-process.js';
import { roleOf, startRedisSentinel } from '../../../redis-sentinel.js';
import { AS_LIMITER_USER } from '../../../redis-user.js';
import { until } from '../../../until.js';
import type { TopologyName } from '../../topologies/topology.js';
import { keepData, type Store } from './store.js';

/** Longer than any stall, so that a stall is no failover. */
const PATIENT_MILLIS = 60_000;
/** So long must a primary be silent for its replica to take over. */
const IMPATIENT_MILLIS = 1500;

/** Three primaries with a replica each. */
async function startCluster(): Promise<Store> {
  const cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 1 });
  const { nodes } = cluster;
  await Promise.all(nodes.map(keepData));
  const losesPatienceAfter = (millis: number): Promise<unknown> =>
    Promise.all(
      responsive(nodes).map((node) =>
        node.command('CONFIG', 'SET', 'cluster-node-timeout', millis),
      ),
    );
  await losesPatienceAfter(PATIENT_MILLIS);
  const takesWrites = async (): Promise<void> => {
    await until(async () => {
      const primaries = await cluster.primaries();
      return primaries.length === 3 && (await Promise.all(primaries.map(isHealthy))).every(Boolean);
    });
  };
  return {
    servers: nodes,
    settings: cluster.settings,
    primaries: () => cluster.primaries(),
    takesWrites,
    failOver: async () => {
      await losesPatienceAfter(IMPATIENT_MILLIS);
      const [primary] = await cluster.primaries();
      await primary!.kill();
      await takesWrites();
    },
    mend: async () => {
      const dead = nodes.filter((node) => !node.responsive);
      await Promise.all(dead.map((node) => node.restart({ withData: true })));
      await losesPatienceAfter(PATIENT_MILLIS);
      await cluster.settled();
    },
    stop: () => cluster.stop(),
  };
}

function responsive<Server extends RedisProcess>(servers: readonly Server[]): Server[] {
  return servers.filter((server) => server.responsive);
}

/** Longer than any stall, so that a stall is no failover. */
const DOWN_AFTER_MILLIS = 60_000;

/** A primary, two replicas of it, and three Sentinels. */
async function startSentinels(): Promise<Store> {
  const setup = await startRedisSentinel();
  await Promise.all([
    ...setup.servers.map(keepData),
    ...setup.sentinels.map((sentinel) =>
      sentinel.command(
        ...(['SENTINEL', 'SET', setup.masterName] as const),
        'down-after-milliseconds',
        DOWN_AFTER_MILLIS,
      ),
    ),
  ]);
  return {
    servers: setup.servers,
    settings: setup.settings,
    primaries: async () => [await setup.primary()],
    takesWrites: async () => {
      await setup.primary();
    },
    failOver: async () => {
      const primary = await setup.failover();
      // A write to the old primary before it knows of the new one is lost.
      const others = setup.servers.filter((server) => server !== primary);
      await until(async () => (await Promise.all(others.map(isReplica))).every(Boolean));
    },
    mend: () => setup.settled(),
    stop: () => setup.stop(),
  };
}

async function isReplica(server: RedisProcess): Promise<boolean> {
  return (await roleOf(server))[0] === 'slave';
}

/** One Redis, with its data on disk. */
async function startStandalone(): Promise<Store> {
  const server = await startRedisProcess({
    configure: () => ['appendonly yes', 'appendfsync no'],
  });
  const serves = async (): Promise<void> => {
    await server.command('PING');
  };
  return {
    servers: [server],
    settings: { REDIS_URL: server.address, ...AS_LIMITER_USER },
    primaries: () => Promise.resolve([server]),
    takesWrites: serves,
    failOver: undefined,
    mend: serves,
    stop: () => server.stop(),
  };
}

const STARTS = { standalone: startStandalone, sentinel: startSentinels, cluster: startCluster };

export function startStore(topology: TopologyName): Promise<Store> {
  return STARTS[topology]();
}
