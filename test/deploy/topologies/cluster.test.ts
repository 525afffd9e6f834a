import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { ClusterNode } from '../../support/cluster-node.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { approve, send } from '../../support/http-client.js';
import { requestRate, waitingCount, waitInTurn } from '../../support/rate-client.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { countStoredWaiters } from '../../support/stored-waiters.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const naming = new KeyNaming('sluice:');
const AWKWARD = ['{', '}', '{}', '}x{', 'a{b}c', '%7B', '100%', 'ключ', '🚰', '__proto__', ' '];

describeWithRedisProgram('in a Redis Cluster', () => {
  let cluster: RedisCluster;
  let first: ReplicaProcess;
  let second: ReplicaProcess;

  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 3, replicasPerPrimary: 1 });
    const environment = {
      ...cluster.settings,
      WINDOW_MILLIS: '3600000',
      // Long enough for a busy machine, and for a failover.
      STORE_TIMEOUT_MILLIS: '5000',
    };
    [first, second] = await Promise.all([startReplica(environment), startReplica(environment)]);
  });
  afterAll(async () => {
    await killReplicas();
    await cluster.stop();
  });

  const stateOf = (key: string): string => naming.namesOf(key).state;
  /** A key whose names are on `primary`. */
  const keyOn = async (primary: ClusterNode): Promise<string> => {
    for (;;) {
      const key = uniqueKey();
      if ((await cluster.primaryOf(stateOf(key))) === primary) return key;
    }
  };
  const release = async (key: string, requestId: string): Promise<void> => {
    const path = `/rate/${encodeURIComponent(key)}/${requestId}`;
    expect((await send(first.url, 'DELETE', path)).status).toBe(200);
  };

  test('limits are exact over all replicas for any key', async () => {
    for (const key of [...AWKWARD, ...Array.from({ length: 20 }, uniqueKey)]) {
      const answers = await Promise.all(
        Array.from(
          { length: 12 },
          (_, i) => requestRate(i % 2 === 0 ? first.url : second.url, key, 'maxRequests=5').answer,
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect([key, statuses]).toEqual([
        key,
        [...Array<number>(5).fill(200), ...Array<number>(7).fill(429)],
      ]);
    }
  });

  test('a released approval wakes the first waiter, on any shard', async () => {
    for (const primary of await cluster.primaries()) {
      const key = await keyOn(primary);
      const approved = await approve(first.url, key, '?maxRequests=1');
      const waiters = await waitInTurn([first, second], key, 2);
      await release(key, approved);
      const served = await waiters[0]!.answer;
      expect(served.status).toBe(200);
      expect(await waitingCount(first.url, key)).toBe(1);
      await release(key, served.requestId!);
      expect((await waiters[1]!.answer).status).toBe(200);
    }
  });

  test('debug lists the keys of all shards', async () => {
    const keys = await Promise.all((await cluster.primaries()).map(keyOn));
    for (const key of keys) await approve(first.url, key);
    const { Instances } = (await send(second.url, 'GET', '/debug')).json() as {
      Instances: Record<string, unknown>;
    };
    expect(Object.keys(Instances)).toEqual(expect.arrayContaining(keys));
  });

  test('a primary that dies does not affect other shards, and its waiters are served in order', async () => {
    const [dying, ...living] = await cluster.primaries();
    const key = await keyOn(dying!);
    await approve(first.url, key, '?maxRequests=1');
    const waiters = await waitInTurn([first, second], key, 4);
    const [successor] = await cluster.replicasOf(dying!);
    // A write that has not been replicated is lost with the primary.
    await until(async () => {
      const copied = successor!.connect({ readOnly: true });
      const count = await countStoredWaiters(copied, naming.namesOf(key));
      copied.disconnect();
      return count === 4;
    });
    await dying!.kill();
    for (const primary of living) await approve(second.url, await keyOn(primary));

    await cluster.primaryOf(stateOf(key));
    // Makes more room, which goes to the first waiters.
    await until(async () => {
      const check = await requestRate(second.url, key, 'maxRequests=3').answer;
      return check.status === 429;
    });
    expect((await waiters[0]!.answer).status).toBe(200);
    expect((await waiters[1]!.answer).status).toBe(200);
    expect(await waitingCount(first.url, key)).toBe(2);
    for (const waiter of waiters) waiter.disconnect();
    await until(async () => (await waitingCount(first.url, key)) === 0);

    // Its folder has the id by which the other nodes know it.
    await dying!.restart({ withData: true });
    await cluster.settled();
  });
});
