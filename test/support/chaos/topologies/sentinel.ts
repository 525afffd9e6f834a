import { startRedisSentinel } from '../../redis-sentinel.js';
import { type FaultKind, nothingToMend } from '../faults/fault.js';
import { replicaDies, replicaStandsStill } from '../faults/replica-faults.js';
import {
  commandsArePaused,
  connectionsAreCut,
  scriptsAreForgotten,
  SERVER_SCOPE,
  serverDies,
  serverStandsStill,
} from '../faults/server-faults.js';
import type { Topology } from './topology.js';

/** A primary, two replicas of it, and three Sentinels. */
export async function startSentinels(): Promise<Topology> {
  const setup = await startRedisSentinel();
  const victim = () => setup.primary();
  const loses = 'unreplicated';
  const settled = () => setup.settled();
  const failover: FaultKind = {
    name: 'SENTINEL FAILOVER',
    draw: () => ({
      target: 'primary',
      scope: SERVER_SCOPE,
      loses,
      millis: 0,
      begin: async () => {
        await setup.failover();
        await settled();
      },
      end: nothingToMend,
    }),
  };
  return {
    servers: setup.servers,
    environmentOf: () => setup.settings,
    faults: (fleet) => [
      replicaDies(fleet),
      replicaStandsStill(fleet),
      connectionsAreCut(victim, 'NORMAL'),
      connectionsAreCut(victim, 'PUBSUB'),
      // Sentinels publish, and have no answer to that and to what they send after it: they may promote another.
      commandsArePaused(victim, 'WRITE', { loses, settled }),
      scriptsAreForgotten(victim),
      failover,
      serverStandsStill('SIGSTOP of the primary', victim, { loses, settled }),
      serverDies('SIGKILL of the primary', victim, { withData: true, loses, settled }),
    ],
    settled,
    stop: () => setup.stop(),
  };
}
