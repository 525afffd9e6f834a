import { KeyNaming } from '../../../src/redis/key-names.js';
import { checkMany } from '../../support/bulk-client.js';
import type { ClusterNode } from '../../support/cluster-node.js';
import { debugState } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { OPERATION } from '../../support/redis-user.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';

const naming = new KeyNaming('sluice:');
const stateOf = (key: string): string => naming.namesOf(key).state;

/** The most keys in a call. */
const KEYS_PER_CALL = 16;

describeWithRedisProgram('the calls to a Redis Cluster', () => {
  let cluster: RedisCluster;
  let replica: ReplicaProcess;

  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 0 });
    replica = await startReplica({
      ...cluster.settings,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '2',
      STORE_TIMEOUT_MILLIS: '5000',
    });
  });
  afterAll(async () => {
    await killReplicas();
    await cluster.stop();
  });

  const check = async (keys: readonly string[]): Promise<number[]> =>
    (
      await checkMany(
        replica.url,
        keys.map((key) => ({ key })),
      )
    ).map(({ status }) => status);
  const times = (count: number, status: number): number[] => Array<number>(count).fill(status);

  async function keysOn(primary: ClusterNode, count: number): Promise<string[]> {
    const keys: string[] = [];
    while (keys.length < count) {
      const key = uniqueKey();
      if ((await cluster.primaryOf(stateOf(key))) === primary) keys.push(key);
    }
    return keys;
  }

  async function callsTo(nodes: readonly ClusterNode[]): Promise<number[]> {
    const calls = nodes.map(async (node) => {
      const stats = String(await node.command('INFO', 'commandstats'));
      const pattern = new RegExp(`^cmdstat_${OPERATION.toLowerCase()}:calls=(\\d+)`, 'm');
      return Number(pattern.exec(stats)?.[1] ?? 0);
    });
    return Promise.all(calls);
  }

  test('have the keys of a primary in common, whatever slots they are in', async () => {
    const nodes = await cluster.primaries();
    const keys = (await Promise.all(nodes.map((node) => keysOn(node, KEYS_PER_CALL)))).flat();
    // Loads the functions, and shows the replica how many primaries there are.
    expect(await check(keys)).toEqual(times(keys.length, 200));
    for (const node of nodes) await node.command('CONFIG', 'RESETSTAT');
    expect(await check(keys)).toEqual(times(keys.length, 200));
    expect(await callsTo(nodes)).toEqual(nodes.map(() => 1));
    expect(await check(keys)).toEqual(times(keys.length, 429));
  });

  test('decide a key whose slot has moved once, beside the keys that have stayed', async () => {
    const [source, target] = (await cluster.primaries()) as [ClusterNode, ClusterNode];
    const keys = await keysOn(source, 8);
    expect(await check(keys)).toEqual(times(8, 200));
    await cluster.migrateSlot(await cluster.slotOf(stateOf(keys[3]!)), target);
    expect(await check([...keys, ...keys])).toEqual([...times(8, 200), ...times(8, 429)]);
    for (const key of keys) {
      expect((await debugState(replica.url, key)).NumApprovedThisWindow).toBe(2);
    }
  });

  test('decide keys once while the slot of one moves, name by name', async () => {
    const [source, target] = (await cluster.primaries()) as [ClusterNode, ClusterNode];
    const keys = await keysOn(source, 4);
    const [moving] = keys as [string];
    const others = keys.slice(1);
    expect(await check(keys)).toEqual(times(4, 200));
    const statuses: number[] = [];
    await cluster.migrateSlot(await cluster.slotOf(stateOf(moving)), target, {
      betweenSteps: async () => {
        // A slot with some of a key's names on each side can't be asked, by Redis's rules.
        const asked = check([...others, ...(statuses.length === 0 ? [moving] : [])]);
        statuses.push(...(await asked));
      },
    });
    statuses.push(...(await check(keys)));
    const approved = statuses.filter((status) => status === 200);
    // The first round, and nothing more than the maximum of each key.
    expect(approved).toHaveLength(4);
    for (const key of keys) {
      expect((await debugState(replica.url, key)).NumApprovedThisWindow).toBe(2);
    }
  });

  test('go on after all connections were cut', async () => {
    const nodes = await cluster.primaries();
    const keys = (await Promise.all(nodes.map((node) => keysOn(node, 4)))).flat();
    expect(await check(keys)).toEqual(times(keys.length, 200));
    for (const node of nodes) await node.command('CLIENT', 'KILL', 'TYPE', 'normal');
    expect(await check(keys)).toEqual(times(keys.length, 200));
    for (const node of nodes) await node.command('CONFIG', 'RESETSTAT');
    expect(await check(keys)).toEqual(times(keys.length, 429));
    expect(await callsTo(nodes)).toEqual(nodes.map(() => 1));
  });
});
