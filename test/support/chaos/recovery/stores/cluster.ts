import { isHealthy } from '../../../cluster-node.js';
import { startRedisCluster } from '../../../redis-cluster.js';
import type { RedisProcess } from '../../../redis-process.js';
import { until } from '../../../until.js';
import { keepData, type Store } from './store.js';

/** Longer than any stall, so that a stall is no failover. */
const PATIENT_MILLIS = 60_000;
/** So long must a primary be silent for its replica to take over. */
const IMPATIENT_MILLIS = 1500;

/** Three primaries with a replica each. */
export async function startCluster(): Promise<Store> {
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
