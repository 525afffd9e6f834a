import { Cluster } from 'ioredis';

import { describeWithRedisProgram } from './describe-with-redis-program.js';
import { extent, IS_FULL } from './extent.js';
import { type RedisCluster, startRedisCluster } from './redis-cluster.js';
import { uniqueKey } from './unique-key.js';
import { until } from './until.js';

describeWithRedisProgram('a Redis Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 1 });
    client = new Cluster(cluster.nodes.map(({ address }) => address));
  });
  afterAll(() => {
    client.disconnect();
  });

  test('has three primaries with a replica each, and an owner for every slot', async () => {
    const primaries = await cluster.primaries();
    expect(primaries).toHaveLength(3);
    for (const primary of primaries) {
      expect(await cluster.replicasOf(primary)).toHaveLength(1);
    }
    for (const node of cluster.nodes) {
      expect(await node.command('CLUSTER', 'INFO')).toContain('cluster_slots_ok:16384');
    }
    expect(await cluster.slotOf('{name}:queue')).toBe(await cluster.slotOf('name'));
  });

  // Each of the names `a`, `b` and `c` is in another shard.
  test.each([
    { mode: 'FORCE', name: 'a' },
    { mode: 'TAKEOVER', name: 'b' },
  ] as const)(
    'a failover ($mode) makes the replica the primary of its keys, and the primary its replica',
    async ({ mode, name }) => {
      const primary = await cluster.primaryOf(name);
      const [replica] = await cluster.replicasOf(primary);
      await client.set(name, 'value');
      // A forced failover does not wait until the replica has the primary's data.
      await until(async () => ((await replica!.command('KEYS', name)) as string[]).length === 1);

      await cluster.failover(replica!, mode);
      expect(await cluster.primaryOf(name)).toBe(replica);
      expect(await cluster.replicasOf(replica!)).toEqual([primary]);
      expect(await client.get(name)).toBe('value');
    },
  );

  // Only in CI: no other test promotes a node twice, and the second election takes long.
  if (IS_FULL) {
    test('a node that is promoted twice within seconds stays the primary', async () => {
      const name = 'c';
      const primary = await cluster.primaryOf(name);
      const [replica] = await cluster.replicasOf(primary);
      await cluster.failover(replica!);
      expect(await cluster.primaryOf(name)).toBe(replica);
      await cluster.failover(primary, 'TAKEOVER');
      expect(await cluster.primaryOf(name)).toBe(primary);
      await cluster.failover(replica!);
      expect(await cluster.primaryOf(name)).toBe(replica);
    });
  }

  test('a slot that moves takes its keys along, step by step', async () => {
    const tag = uniqueKey();
    const names = [1, 2, 3].map((i) => `{${tag}}:${i}`);
    for (const name of names) await client.set(name, name);
    const slot = await cluster.slotOf(tag);
    const source = await cluster.primaryOf(tag);
    const target = (await cluster.primaries()).find((node) => node !== source)!;

    const left: unknown[] = [];
    await cluster.migrateSlot(slot, target, {
      betweenSteps: async (moved) => {
        left.push([moved, await source.command('CLUSTER', 'COUNTKEYSINSLOT', slot)]);
        // Redis redirects clients to each key while its slot moves.
        expect(await client.get(names[0]!)).toBe(names[0]);
      },
    });
    expect(left).toEqual([
      [0, 3],
      [1, 2],
      [2, 1],
      [3, 0],
    ]);
    expect(await cluster.primaryOf(tag)).toBe(target);
    expect(await target.command('CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(3);
    expect(await Promise.all(names.map((name) => client.get(name)))).toEqual(names);
  });

  test.each(extent(['suspended'], ['killed', 'suspended']))(
    'the replica of a %s primary is promoted',
    async (fate) => {
      const name = uniqueKey();
      const primary = await cluster.primaryOf(name);
      const [replica] = await cluster.replicasOf(primary);
      if (fate === 'killed') await primary.kill();
      else primary.signal('SIGSTOP');
      expect(await cluster.primaryOf(name)).toBe(replica);

      if (fate === 'killed') await primary.restart({ withData: true });
      else primary.signal('SIGCONT');
      await cluster.settled();
      expect(await cluster.primaryOf(name)).toBe(replica);
      expect(await cluster.replicasOf(replica!)).toEqual([primary]);
    },
  );
});
