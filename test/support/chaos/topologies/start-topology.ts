import { setTimeout as delay } from 'node:timers/promises';

import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { startFaultProxy } from '../../fault-proxy.js';
import { type RedisCluster, startRedisCluster } from '../../redis-cluster.js';
import { startRedisProcess } from '../../redis-process.js';
import { startRedisSentinel } from '../../redis-sentinel.js';
import { AS_LIMITER_USER } from '../../redis-user.js';
import { until } from '../../until.js';
import { type FaultKind, nothingToMend } from '../faults/fault.js';
import { linkFaults } from '../faults/link-faults.js';
import { replicaDies, replicaStandsStill } from '../faults/replica-faults.js';
import {
  commandsArePaused,
  connectionsAreCut,
  scriptsAreForgotten,
  SERVER_SCOPE,
  serverDies,
  serverStandsStill,
  type Victim,
} from '../faults/server-faults.js';
import { ALL_KEYS, KEYS } from '../limits.js';
import type { Random } from '../random.js';
import type { Topology, TopologyName } from './topology.js';

/** A primary, two replicas of it, and three Sentinels. */
async function startSentinels(): Promise<Topology> {
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

const naming = new KeyNaming('sluice:');

/** Three primaries with a replica each. */
async function startCluster(): Promise<Topology> {
  const cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 1 });
  const settled = () => cluster.settled();
  const loses = 'unreplicated';
  return {
    servers: cluster.nodes,
    environmentOf: () => cluster.settings,
    faults: (fleet) => [
      replicaDies(fleet),
      replicaStandsStill(fleet),
      onPrimaryOfKey(cluster, (victim) => connectionsAreCut(victim, 'NORMAL')),
      onPrimaryOfKey(cluster, (victim) => connectionsAreCut(victim, 'PUBSUB')),
      onPrimaryOfKey(cluster, (victim) => commandsArePaused(victim, 'WRITE')),
      onPrimaryOfKey(cluster, (victim) => scriptsAreForgotten(victim)),
      onPrimaryOfKey(cluster, (victim) =>
        serverStandsStill('SIGSTOP of a primary', victim, { loses, settled }),
      ),
      onPrimaryOfKey(cluster, (victim) =>
        serverDies('SIGKILL of a primary', victim, { withData: true, loses, settled }),
      ),
      failover(cluster),
      migration(cluster),
    ],
    settled,
    stop: () => cluster.stop(),
  };
}

/** A fault of the primary that holds a key in use. */
function onPrimaryOfKey(cluster: RedisCluster, kindFor: (victim: Victim) => FaultKind): FaultKind {
  const { name } = kindFor(() => Promise.reject(new Error('no key drawn')));
  return {
    name,
    draw: (random) => {
      const key = random.pick(ALL_KEYS);
      const fault = kindFor(() => cluster.primaryOf(naming.namesOf(key).state)).draw(random);
      return { ...fault, target: `${fault.target}, which has ${key}` };
    },
  };
}

function failover(cluster: RedisCluster): FaultKind {
  return {
    name: 'CLUSTER FAILOVER',
    draw: (random) => {
      const key = random.pick(ALL_KEYS);
      return {
        target: `primary that has ${key}`,
        scope: SERVER_SCOPE,
        // The primary waits until its replica has all.
        millis: 0,
        begin: async () => {
          const replica = await until(async () => {
            const primary = await cluster.primaryOf(naming.namesOf(key).state);
            // None where another has taken its part meanwhile.
            return (await cluster.replicasOf(primary))[0];
          });
          await cluster.failover(replica);
        },
        end: nothingToMend,
      };
    },
  };
}

/** The keys of a queue move one by one while its waiters wait. */
function migration(cluster: RedisCluster): FaultKind {
  return {
    name: 'migration of a slot in use',
    draw: (random: Random) => {
      const key = random.pick([...KEYS.queued, ...KEYS.released]);
      const choice = random.next();
      const pause = random.whole(0, 150);
      return {
        target: `slot of ${key}`,
        scope: SERVER_SCOPE,
        moves: key,
        millis: 0,
        begin: async () => {
          const name = naming.namesOf(key).state;
          const source = await cluster.primaryOf(name);
          const others = (await cluster.primaries()).filter((node) => node !== source);
          const target = others[Math.floor(choice * others.length)]!;
          await cluster.migrateSlot(await cluster.slotOf(name), target, {
            betweenSteps: () => delay(pause),
          });
        },
        end: nothingToMend,
      };
    },
  };
}

const STARTS = { standalone: startStandalone, sentinel: startSentinels, cluster: startCluster };

export function startTopology(name: TopologyName, replicas: number): Promise<Topology> {
  return STARTS[name](replicas);
}
