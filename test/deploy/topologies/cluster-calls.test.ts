import { pino } from 'pino';

import { systemClock } from '../../../src/common/clock.js';
import { connect, waitUntilReady } from '../../../src/redis/connections/connect.js';
import { RedisLimiter } from '../../../src/redis/redis-limiter.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { ClusterNode } from '../../support/cluster-node.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { knownScripts } from '../../support/known-scripts.js';
import { type DeclaredLimits, keyLimits } from '../../support/limits.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { OPERATION } from '../../support/redis-user.js';
import { until } from '../../support/until.js';
import { unobserved } from '../../support/unguarded.js';
import { uniqueKey } from '../../support/unique-key.js';

/** So long that a short hang of the machine does not look like an outage. */
const TIMEOUT_MILLIS = 60_000;

/** Starts a limiter in this process that keeps its state in a Redis Cluster. Calls of one tick are sent together. */
async function limiterInCluster(
  cluster: RedisCluster,
  limits: DeclaredLimits,
  leaseMillis = 5_000,
): Promise<RedisLimiter> {
  const logger = pino({ level: 'silent' });
  const connections = connect(
    {
      mode: 'cluster',
      urls: cluster.settings.REDIS_URL.split(','),
      database: 0,
      timeoutMillis: TIMEOUT_MILLIS,
      name: 'test',
    },
    logger,
  );
  await waitUntilReady(connections, TIMEOUT_MILLIS);
  return new RedisLimiter({
    connections,
    rulesLoadedAt: () => 0,
    limitsOf: () => keyLimits(limits),
    keyPrefix: 'sluice:',
    replicaId: 'replica',
    leaseMillis,
    database: 0,
    timeoutMillis: TIMEOUT_MILLIS,
    maxWaiters: Infinity,
    maxIdsPerKey: 1_000_000,
    maxHoldsPerKey: 100,
    maxGroupsPerKey: 100,
    clock: systemClock,
    logger,
    observer: unobserved,
  });
}

const naming = new KeyNaming('sluice:');
const stateOf = (key: string): string => naming.namesOf(key).state;

/** The most keys in a call. */
const KEYS_PER_CALL = 16;

describeWithRedisProgram('the calls to a Redis Cluster', () => {
  let cluster: RedisCluster;
  let limiter: RedisLimiter;

  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 0 });
    limiter = await limiterInCluster(cluster, {
      windowMillis: 3_600_000,
      maxRequests: 2,
      maxRequestsInQueue: 0,
    });
  });
  afterAll(async () => {
    await limiter.close();
    await cluster.stop();
  });

  /** Checks the keys in one tick, each key's checks in their order. */
  const check = async (keys: readonly string[]): Promise<string[]> => {
    const order = {};
    const checks = keys.map((key) => limiter.check({ key, canWait: false, order }));
    return (await Promise.all(checks)).map(({ outcome }) => outcome);
  };
  const times = (count: number, outcome: string): string[] => Array<string>(count).fill(outcome);

  async function expectTwoApprovals(keys: readonly string[]): Promise<void> {
    for (const key of keys)
      expect(await limiter.ask('inspect', { key })).toMatchObject({ limits: [{ used: 2 }] });
  }

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
    const ofNodes = await Promise.all(nodes.map((node) => keysOn(node, KEYS_PER_CALL)));
    // Alternately of each primary.
    const keys = ofNodes[0]!.flatMap((_, i) => ofNodes.map((some) => some[i]!));
    // Loads the functions, and shows the limiter how many primaries there are.
    expect(await check(keys)).toEqual(times(keys.length, 'approved'));
    for (const node of nodes) await node.command('CONFIG', 'RESETSTAT');
    expect(await check(keys)).toEqual(times(keys.length, 'approved'));
    expect(await callsTo(nodes)).toEqual(nodes.map(() => 1));
    expect(await check(keys)).toEqual(times(keys.length, 'denied'));
  });

  test('decide a key whose slot has moved once, beside the keys that have stayed', async () => {
    const [source, target] = (await cluster.primaries()) as [ClusterNode, ClusterNode];
    const keys = await keysOn(source, 8);
    expect(await check(keys)).toEqual(times(8, 'approved'));
    await cluster.migrateSlot(await cluster.slotOf(stateOf(keys[3]!)), target);
    expect(await check([...keys, ...keys])).toEqual([
      ...times(8, 'approved'),
      ...times(8, 'denied'),
    ]);
    await expectTwoApprovals(keys);
  });

  test('decide keys once while the slot of one moves, name by name', async () => {
    const [source, target] = (await cluster.primaries()) as [ClusterNode, ClusterNode];
    const keys = await keysOn(source, 4);
    const [moving] = keys as [string];
    const others = keys.slice(1);
    expect(await check(keys)).toEqual(times(4, 'approved'));
    const outcomes: string[] = [];
    await cluster.migrateSlot(await cluster.slotOf(stateOf(moving)), target, {
      betweenSteps: async () => {
        // A slot with some of a key's names on each side can't be asked, by Redis's rules.
        const asked = check([...others, ...(outcomes.length === 0 ? [moving] : [])]);
        outcomes.push(...(await asked));
      },
    });
    outcomes.push(...(await check(keys)));
    const approved = outcomes.filter((outcome) => outcome === 'approved');
    // The first round, and nothing more than the maximum of each key.
    expect(approved).toHaveLength(4);
    await expectTwoApprovals(keys);
  });

  test.each([
    ['alone', 0],
    ['with a key of another slot', 1],
  ])('begin no window halfway while the slot of a key is being moved, %s', async (_, others) => {
    // Three of its windows are as long as the lease, so that the fourth one has all names that a window needs.
    const ofShort = { windowMillis: 500, maxRequests: 2, maxRequestsInQueue: 0 };
    const short = await limiterInCluster(cluster, ofShort, 1_500);
    const [source, target] = (await cluster.primaries()) as [ClusterNode, ClusterNode];
    const keys = await keysOn(source, 1 + others);
    const [moving] = keys as [string];
    const { state, requests, pastRequests } = naming.namesOf(moving);
    const ask = async (): Promise<string[]> => {
      const asked = keys.map((key) => short.check({ key, canWait: false, order: {} }));
      return (await Promise.all(asked)).map(({ outcome }) => outcome);
    };
    const slot = await cluster.slotOf(state);
    await until(async () => {
      // The windows before have two approvals, and the next one has one.
      await ask();
      await ask();
      return (await source.command('EXISTS', state, requests, ...pastRequests)) === 5;
    });
    // A call with all names also finds all of them.
    const { queue, records, replicas } = naming.namesOf(moving);
    for (const name of [queue, replicas]) await source.command('SET', name, 'unread');
    // A call with all names that begins a window looks for records.
    await source.command('HSET', records, 'unread', '');
    await source.command('CONFIG', 'RESETSTAT');
    let refused: Promise<string[]> | undefined;
    let isUnderWay = false;
    await cluster.migrateSlot(slot, target, {
      betweenSteps: async (moved) => {
        if (moved > 0) return;
        await until(async () => {
          if (!isUnderWay) {
            isUnderWay = true;
            refused = ask().finally(() => (isUnderWay = false));
          }
          return /^errorstat_\w/m.test(String(await source.command('INFO', 'errorstats')));
        });
        const approved = await source.command('HGET', state, 'approved');
        expect(await source.command('SCARD', requests)).toBe(Number(approved));
      },
    });
    expect((await refused)?.[0]).toBe('approved');
    await short.close();
  });

  test('go on after all connections were cut', async () => {
    const nodes = await cluster.primaries();
    const keys = (await Promise.all(nodes.map((node) => keysOn(node, 4)))).flat();
    expect(await check(keys)).toEqual(times(keys.length, 'approved'));
    for (const node of nodes) await node.command('CLIENT', 'KILL', 'TYPE', 'normal');
    expect(await check(keys)).toEqual(times(keys.length, 'approved'));
    for (const node of nodes) await node.command('CONFIG', 'RESETSTAT');
    expect(await check(keys)).toEqual(times(keys.length, 'denied'));
    expect(await callsTo(nodes)).toEqual(nodes.map(() => 1));
  });

  test('run scripts on a primary that had none when slots move to it', async () => {
    const [source] = (await cluster.primaries()) as [ClusterNode];
    const keys = await keysOn(source, 4);
    expect(await check(keys)).toEqual(times(4, 'approved'));
    const joined = await cluster.join();
    expect(await knownScripts(joined)).toEqual([]);
    for (const key of keys) await cluster.migrateSlot(await cluster.slotOf(stateOf(key)), joined);
    expect(await check([...keys, ...keys])).toEqual([
      ...times(4, 'approved'),
      ...times(4, 'denied'),
    ]);
    expect(await knownScripts(joined)).toContain('check');
  });
});
