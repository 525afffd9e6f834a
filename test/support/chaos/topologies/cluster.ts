import { setTimeout as delay } from 'node:timers/promises';

import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { type RedisCluster, startRedisCluster } from '../../redis-cluster.js';
import { until } from '../../until.js';
import { type FaultKind, nothingToMend } from '../faults/fault.js';
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
import type { Topology } from './topology.js';

const naming = new KeyNaming('sluice:');

/** Three primaries with a replica each. */
export async function startCluster(): Promise<Topology> {
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
