import { type RedisProcess, startRedisProcess } from '../../../redis-process.js';
import { startRedisSentinel } from '../../../redis-sentinel.js';
import { AS_LIMITER_USER } from '../../../redis-user.js';
import { until } from '../../../until.js';
import type { TopologyName } from '../../topologies/topology.js';
import { startCluster } from './cluster.js';
import { keepData, type Store } from './store.js';

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
  return ((await server.command('INFO', 'replication')) as string).includes('role:slave');
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
