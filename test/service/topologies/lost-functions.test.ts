import calculateSlot from 'cluster-key-slot';

import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { CheckLoad, type CheckLoadOptions } from '../../support/check-load.js';
import type { ClusterNode } from '../../support/cluster-node.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { forgetScripts, textsSent } from '../../support/forget-scripts.js';
import { knownScripts } from '../../support/known-scripts.js';
import { requestRate, waitingCount } from '../../support/rate-client.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { type RedisSentinel, startRedisSentinel } from '../../support/redis-sentinel.js';
import { FORM } from '../../support/redis-user.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { serveInTurn, waitFor } from '../../support/waited-key.js';

const naming = new KeyNaming('sluice:');
const stateOf = (key: string): string => naming.namesOf(key).state;

/** With SLUICE_TEST_FORM=script the servers lose their script caches. */
const LOST = FORM === 'function' ? 'functions' : 'scripts';
const MAXIMUM = 60;
const WAITERS = 4;
/** Checks that show that the load goes on. */
const SOME = 100;
const FLUSHES = extent(20, 60);
const SETTINGS = {
  WINDOW_MILLIS: '3600000',
  MAX_REQUESTS: String(MAXIMUM),
  // Long enough for a busy machine, and for a failover.
  STORE_TIMEOUT_MILLIS: '10000',
};

const start = (settings: Record<string, string>): Promise<ReplicaProcess[]> =>
  Promise.all(Array.from({ length: 2 }, () => startReplica({ ...SETTINGS, ...settings })));

async function underLoad(
  options: Omit<CheckLoadOptions, 'maximum'>,
  test: (load: CheckLoad) => Promise<void>,
): Promise<void> {
  const load = new CheckLoad({ ...options, maximum: MAXIMUM });
  try {
    await load.decide(SOME);
    await test(load);
  } finally {
    await load.end();
  }
}

/** Stops a load, and expects that clients were told exactly of what Redis has approved. */
async function expectExact(
  load: CheckLoad,
  primaryOf: (name: string) => Promise<RedisProcess>,
): Promise<void> {
  await load.stop();
  expect(await load.violations(primaryOf)).toEqual([]);
}

/** Makes servers forget, one after the other, again and again between checks. */
async function forgetInTurn(servers: readonly RedisProcess[], load: CheckLoad): Promise<void> {
  for (let i = 0; i < FLUSHES; i += 1) {
    await forgetScripts(servers[i % servers.length]!);
    await load.decide(10);
  }
}

/** Makes servers forget until `isOver`, also those that are down or not writable at times. */
async function keepForgetting(
  servers: readonly RedisProcess[],
  isOver: () => boolean,
): Promise<void> {
  await until(async () => {
    for (const server of servers.filter(({ responsive }) => responsive)) {
      // A server that is being killed, or that changes its role, cuts its connections.
      await forgetScripts(server).catch(() => undefined);
    }
    return isOver();
  });
}

/** Makes servers forget while something happens, and once more after it. */
async function whileForgetting(
  servers: readonly RedisProcess[],
  happen: () => Promise<unknown>,
): Promise<void> {
  let isOver = false;
  const forgetting = keepForgetting(servers, () => isOver);
  try {
    await happen();
  } finally {
    isOver = true;
    await forgetting;
  }
}

/** Resolves when the replicas of a server have everything that it has written so far. */
async function replicated(server: RedisProcess, replicas: number): Promise<void> {
  const client = server.connect();
  try {
    await client.ping();
    expect(await client.wait(replicas, 0)).toBeGreaterThanOrEqual(replicas);
  } finally {
    client.disconnect();
  }
}

/** Makes servers count calls and texts from here on. */
async function countAgain(servers: readonly RedisProcess[]): Promise<void> {
  for (const server of servers) await server.command('CONFIG', 'RESETSTAT');
}

/** Expects that a server has got texts since it counts, and knows the scripts that were called. */
async function expectKnown(servers: readonly RedisProcess[], scripts = ['check']): Promise<void> {
  for (const server of servers) {
    const { runs, texts } = await textsSent(server);
    expect(runs).toBeGreaterThan(0);
    expect(texts).toBeGreaterThan(0);
    expect(await knownScripts(server)).toEqual(expect.arrayContaining(scripts));
  }
}

describeWithRedisProgram(`one Redis that loses its ${LOST}`, () => {
  let redis: RedisProcess;
  let replicas: ReplicaProcess[];
  const primaryOf = () => Promise.resolve(redis);

  beforeEach(async () => {
    redis = await startRedisProcess({ keepsData: true });
    replicas = await start({ REDIS_URL: redis.url });
  });
  afterEach(async () => {
    await killReplicas();
    await redis.stop();
  });

  test('again and again under load gives exactly the maximum, and serves waiters in order', async () => {
    await underLoad({ replicas }, async (load) => {
      const waited = await waitFor(replicas, uniqueKey(), WAITERS);
      const serving = serveInTurn(replicas[1]!.url, waited);
      await forgetInTurn([redis], load);
      expect(await serving).toEqual(new Set([200]));
      await countAgain([redis]);
      const last = await waitFor(replicas, uniqueKey(), WAITERS);
      await forgetScripts(redis);
      expect(await serveInTurn(replicas[0]!.url, last)).toEqual(new Set([200]));
      await load.decide(SOME);
      await expectExact(load, primaryOf);
      await expectKnown([redis], ['check', 'release']);
    });
  });

  test('without a pause between two losses gives exactly the maximum', async () => {
    await underLoad({ replicas }, async (load) => {
      await whileForgetting([redis], () => load.decide(extent(3, 10) * SOME));
      await expectExact(load, primaryOf);
      await expectKnown([redis]);
    });
  });

  test('and restarts with its data gives exactly the maximum, and serves waiters in order', async () => {
    await underLoad({ replicas }, async (load) => {
      const waited = await waitFor(replicas, uniqueKey(), WAITERS);
      await load.endure({
        happen: async () => {
          await loseBeforeRestart(redis);
          await redis.restart({ withData: true });
        },
      });
      expect(await serveInTurn(replicas[1]!.url, waited)).toEqual(new Set([200]));
      await load.decide(SOME);
      await expectExact(load, primaryOf);
      // It counts since its restart.
      await expectKnown([redis], ['check', 'release']);
    });
  });

  test('and restarts without its data keeps the maximum of a key with waiters, and their order', async () => {
    await underLoad({ replicas }, async (load) => {
      const { key, waiters } = await waitFor(replicas, uniqueKey(), WAITERS);
      await load.endure({ loses: 'all', happen: () => redis.restart({ withData: false }) });
      // The replicas put the key back with a full window.
      for (const [i, waiter] of waiters.entries()) {
        const { url } = replicas[i % 2]!;
        await until(async () => {
          const { status } = await requestRate(url, key, `maxRequests=${i + 2}`).answer;
          expect(status).toBe(429);
          return (await waitingCount(url, key)) === WAITERS - i - 1;
        });
        expect((await waiter.answer).status).toBe(200);
      }
      await load.decide(SOME);
      await expectExact(load, primaryOf);
      await expectKnown([redis]);
    });
  });
});

/** Makes Redis forget, and kills it before it learns anything again. */
async function loseBeforeRestart(redis: RedisProcess): Promise<void> {
  const client = redis.connect();
  try {
    await client
      .multi()
      .call('SCRIPT', 'FLUSH', 'SYNC')
      .call('FUNCTION', 'FLUSH', 'SYNC')
      .call('CLIENT', 'PAUSE', '600000', 'ALL')
      .exec();
  } finally {
    client.disconnect();
  }
  await redis.kill();
}

describeWithRedisProgram(`with Sentinels, a primary that loses its ${LOST}`, () => {
  let setup: RedisSentinel;
  let replicas: ReplicaProcess[];
  const primaryOf = () => setup.primary();

  beforeAll(async () => {
    setup = await startRedisSentinel();
    replicas = await start(setup.settings);
  });
  afterAll(async () => {
    await killReplicas();
    await setup.stop();
  });

  test('under load gives exactly the maximum, and serves waiters in order', async () => {
    await underLoad({ replicas }, async (load) => {
      const waited = await waitFor(replicas, uniqueKey(), WAITERS);
      const primary = await setup.primary();
      await countAgain([primary]);
      const serving = serveInTurn(replicas[1]!.url, waited);
      await forgetInTurn([primary], load);
      expect(await serving).toEqual(new Set([200]));
      await expectExact(load, primaryOf);
      await expectKnown([primary]);
    });
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
    replicas = await start(cluster.settings);
  });
  afterAll(async () => {
    expect(replicas.map(({ stderr }) => stderr)).toEqual(['', '']);
    await killReplicas();
    await cluster.stop();
  });

  test('under load gives exactly the maximum, and serves waiters in order', async () => {
    await underLoad({ replicas }, async (load) => {
      const waited = await waitFor(replicas, uniqueKey(), WAITERS);
      const primaries = await cluster.primaries();
      await countAgain(primaries);
      const serving = serveInTurn(replicas[1]!.url, waited);
      await forgetInTurn(primaries, load);
      expect(await serving).toEqual(new Set([200]));
      await expectExact(load, primaryOf);
      await load.probe();
      await expectKnown(primaries);
    });
  });

  test('and whose replica takes over loses no waiter and no approval', async () => {
    await underLoad({ replicas }, async (load) => {
      const waited = await waitFor(replicas, uniqueKey(), WAITERS);
      const [successor] = await cluster.replicasOf(await primaryOfKey(waited.key));
      await load.endure({
        happen: async () => {
          await countAgain(cluster.nodes);
          await whileForgetting(cluster.nodes, () => cluster.failover(successor!));
        },
      });
      expect(await primaryOfKey(waited.key)).toBe(successor);
      await serveInTurn(replicas[1]!.url, waited);
      await load.decide(SOME);
      await expectExact(load, primaryOf);
      await load.probe();
      await expectKnown(await cluster.primaries());
    });
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
