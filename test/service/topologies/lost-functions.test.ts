import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { forgetScripts } from '../../support/forget-scripts.js';
import {
  countAgain,
  expectExact,
  expectKnown,
  forgetInTurn,
  LOST,
  SOME,
  startTwo,
  underLoad,
  WAITERS,
} from '../../support/lost-functions.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { killReplicas, type ReplicaProcess } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { serveInTurn, waitFor } from '../../support/waited-key.js';

// test/deploy/long/lost-functions.test.ts has the same with Sentinels and in a cluster.
describeWithRedisProgram(`one Redis that loses its ${LOST}`, () => {
  let redis: RedisProcess;
  let replicas: ReplicaProcess[];
  const primaryOf = () => Promise.resolve(redis);

  beforeAll(async () => {
    redis = await startRedisProcess({ keepsData: true });
    replicas = await startTwo({ REDIS_URL: redis.url });
  });
  afterAll(async () => {
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
