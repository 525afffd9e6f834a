import { startFaultProxy } from '../../fault-proxy.js';
import { startRedisProcess } from '../../redis-process.js';
import { AS_LIMITER_USER } from '../../redis-user.js';
import { linkFaults } from '../faults/link-faults.js';
import { replicaDies, replicaStandsStill } from '../faults/replica-faults.js';
import {
  commandsArePaused,
  connectionsAreCut,
  scriptsAreForgotten,
  serverDies,
  serverStandsStill,
} from '../faults/server-faults.js';
import type { Topology } from './topology.js';

/** One Redis that loses nothing that it has answered, behind a network of its own for each replica. */
export async function startStandalone(replicas: number): Promise<Topology> {
  const server = await startRedisProcess({ keepsData: true });
  const proxies = await Promise.all(
    Array.from({ length: replicas }, () => startFaultProxy(server.port)),
  );
  const victim = () => Promise.resolve(server);
  return {
    servers: [server],
    environmentOf: (index) => ({ REDIS_URL: proxies[index]!.url, ...AS_LIMITER_USER }),
    faults: (fleet) => [
      replicaDies(fleet),
      replicaStandsStill(fleet),
      ...linkFaults(proxies),
      connectionsAreCut(victim, 'NORMAL'),
      connectionsAreCut(victim, 'PUBSUB'),
      commandsArePaused(victim, 'ALL'),
      commandsArePaused(victim, 'WRITE'),
      scriptsAreForgotten(victim),
      serverStandsStill('SIGSTOP of Redis', victim, {}),
      serverDies('SIGKILL of Redis, restart with its data', victim, { withData: true }),
      serverDies('SIGKILL of Redis, restart without data', victim, {
        withData: false,
        loses: 'memory',
      }),
    ],
    settled: () => server.command('PING'),
    stop: async () => {
      for (const proxy of proxies) proxy.stop();
      await server.stop();
    },
  };
}
