import calculateSlot from 'cluster-key-slot';

import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { ClusterNode } from '../../support/cluster-node.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { knownScripts } from '../../support/known-scripts.js';
import {
  countAgain,
  expectExact,
  expectKnown,
  LOST,
  replicated,
  SOME,
  startTwo,
  underLoad,
  WAITERS,
  whileForgetting,
} from '../../support/lost-functions.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { type RedisSentinel, startRedisSentinel } from '../../support/redis-sentinel.js';
import { killReplicas, type ReplicaProcess } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { serveInTurn, waitFor } from '../../support/waited-key.js';

const naming = new KeyNaming('sluice:');
const stateOf = (key: string): string => naming.namesOf(key).state;

describeWithRedisProgram(`with Sentinels, a primary that loses its ${LOST}`, () => {
  let setup: RedisSentinel;
  let replicas: ReplicaProcess[];
  const primaryOf = () => setup.primary();

  beforeAll(async () => {
    setup = await startRedisSentinel();
    replicas = await startTwo(setup.settings);
  });
  afterAll(async () => {
    await killReplicas();
    await setup.stop();
  });

  test.each([
    ['is replaced by an ordered failover', () => setup.failover()],
    [
      'is killed',
      async () => {
        await (await setup.primary()).kill();
        await setup.primary();
      },
    ],
  ])('and %s loses no waiter, and no approval that was replicated', async (_, happen) => {
    await underLoad({ replicas }, async (load) => {
      const waited = await waitFor(replicas, uniqueKey(), WAITERS);
      await load.endure({
        loses: 'open',
        happen: async () => {
          await replicated(await setup.primary(), 2);
          await countAgain(setup.servers);
          await whileForgetting(setup.servers, happen);
        },
      });
      await serveInTurn(replicas[1]!.url, waited);
      await load.decide(SOME);
      await expectExact(load, primaryOf);
      await expectKnown([await setup.primary()], ['check', 'release']);
    });
  });
});

describeWithRedisProgram(`in a cluster, a primary that loses its ${LOST}`, () => {
  let cluster: RedisCluster;
  let replicas: ReplicaProcess[];
  const primaryOf = (name: string) => cluster.primaryOf(name);
  const primaryOfKey = (key: string) => cluster.primaryOf(stateOf(key));

  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 1 });
    replicas = await startTwo(cluster.settings);
  });
  afterAll(async () => {
    expect(replicas.map(({ stderr }) => stderr)).toEqual(['', '']);
    await killReplicas();
    await cluster.stop();
  });

  test('and is killed loses no waiter, and no approval that was replicated', async () => {
    await underLoad({ replicas }, async (load) => {
      const waited = await waitFor(replicas, uniqueKey(), WAITERS);
      const dying = await primaryOfKey(waited.key);
      await load.endure({
        loses: 'open',
        happen: async () => {
          await replicated(dying, 1);
          await countAgain(cluster.nodes);
          await whileForgetting(cluster.nodes, async () => {
            await dying.kill();
            await primaryOfKey(waited.key);
            // Its folder has the id by which the other nodes know it.
            await dying.restart({ withData: true });
            await cluster.settled();
          });
        },
      });
      await serveInTurn(replicas[1]!.url, waited);
      await load.decide(SOME);
      await expectExact(load, primaryOf);
      await load.probe();
      await expectKnown(await cluster.primaries());
    });
  });

  test('a new primary gets them when slots move to it under load', async () => {
    const slots = [uniqueKey(), uniqueKey()].map((key) => calculateSlot(stateOf(key)));
    const [ofChecks, ofWaiters] = slots as [number, number];
    await underLoad({ replicas, nextKey: () => keyIn(ofChecks) }, async (load) => {
      const waited = await waitFor(replicas, keyIn(ofWaiters), WAITERS);
      const joined: ClusterNode = await cluster.join();
      expect(await knownScripts(joined)).toEqual([]);
      for (const slot of slots) await cluster.migrateSlot(slot, joined, { keysPerStep: 100 });
      await load.decide(SOME);
      expect(await primaryOfKey(waited.key)).toBe(joined);
      expect(await serveInTurn(replicas[1]!.url, waited)).toEqual(new Set([200]));
      await expectExact(load, primaryOf);
      await expectKnown([joined], ['check', 'release']);
    });
  });
});

function keyIn(slot: number): string {
  const base = uniqueKey();
  for (let i = 0; ; i += 1) {
    const key = `${base}-${i}`;
    if (calculateSlot(stateOf(key)) === slot) return key;
  }
}
