import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { storedQueue } from '../../support/stored-queue.js';
import { untilWaiting } from '../../support/debug-state.js';
import {
  killCommandConnections,
  killSubscriberConnections,
} from '../../support/kill-connections.js';
import { requestRate } from '../../support/rate-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas } from '../../support/use-replicas.js';

const naming = new KeyNaming('sluice:');

describe('waiters on three replicas', () => {
  const redis = useRedis();
  const start = useReplicas(redis);

  test('are all served in order while every pub/sub connection is cut again and again', async () => {
    const replicas = await start(3, { MAX_REQUESTS: '5', WINDOW_MILLIS: '100' });
    const key = uniqueKey();
    const ledger = await ApprovalLedger.open(redis.client, key, 5);
    const requests = Array.from({ length: 90 }, (_, i) =>
      requestRate(replicas[i % 3]!.url, key, 'canWait=true'),
    );
    let cut = 0;
    let isOver = false;
    void Promise.allSettled(requests.map(({ answer }) => answer)).then(() => (isOver = true));
    await until(async () => {
      cut += await killSubscriberConnections(redis.client);
      return isOver || ledger.served.length >= 80;
    });
    const answers = await Promise.all(requests.map(({ answer }) => answer));
    await ledger.close();
    expect(cut).toBeGreaterThan(3);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(ledger.violations).toEqual([]);
    expect(ledger.served).toEqual(ledger.joined);
  });

  test('get an approval whose message was lost', async () => {
    const [holder, other] = await start(2, { MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' });
    const key = uniqueKey();
    const { requestId } = await requestRate(other!.url, key).answer;
    const waiter = requestRate(holder!.url, key, 'canWait=true');
    const channel = naming.namesOf(key).wakeChannel;
    await until(async () => (await redis.client.pubsub('NUMSUB', channel))[1] === 1);
    await Promise.all([
      killSubscriberConnections(redis.client),
      fetch(`${other!.url}/rate/${key}/${requestId!}`, { method: 'DELETE' }),
    ]);
    expect(await waiter.answer).toMatchObject({ status: 200 });
  });

  test('keep their order if the connections for commands are also cut', async () => {
    const replicas = await start(3, { MAX_REQUESTS: '5', WINDOW_MILLIS: '200' });
    const key = uniqueKey();
    const ledger = await ApprovalLedger.open(redis.client, key, 5);
    const requests = Array.from({ length: 60 }, (_, i) =>
      requestRate(replicas[i % 3]!.url, key, 'canWait=true'),
    );
    // A check in flight rightly gets a 503 if its connection is cut. This test is about waiters, so it goes on
    // when all checks have been decided, and the replicas know the decisions.
    await until(() => new Set([...ledger.approved, ...ledger.joined]).size === requests.length);
    let isOver = false;
    void Promise.allSettled(requests.map(({ answer }) => answer)).then(() => (isOver = true));
    const served = ledger.served.length;
    await until(() => isOver || ledger.served.length > served);
    for (let round = 0; round < 5; round += 1) {
      const before = ledger.served.length;
      await killCommandConnections(redis.client);
      await until(() => isOver || ledger.served.length > before || ledger.served.length >= 50);
    }
    const answers = await Promise.all(requests.map(({ answer }) => answer));
    await ledger.close();
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(ledger.violations).toEqual([]);
  });

  test('are put back in the order of their arrival if Redis loses its data', async () => {
    const replicas = await start(3, {
      MAX_REQUESTS: '5',
      // Long enough to put all waiters back in the window in which they were lost.
      WINDOW_MILLIS: '5000',
      REPLICA_LEASE_MILLIS: '1500',
    });
    const key = uniqueKey();
    const names = naming.namesOf(key);
    await Promise.all([0, 1, 2, 0, 1].map((i) => requestRate(replicas[i]!.url, key).answer));
    const ledger = await ApprovalLedger.open(redis.client, key, 5);
    const requests = [];
    for (let i = 0; i < 9; i += 1) {
      requests.push(requestRate(replicas[i % 3]!.url, key, 'canWait=true'));
      await until(() => ledger.joined.length === i + 1);
    }
    const { waiting: before } = await storedQueue(redis.client, names);
    await redis.client.flushall();
    await until(async () => (await redis.client.hlen(names.waiting)) === before.length);
    const { waiting: after } = await storedQueue(redis.client, names);
    expect([...after].sort(([, a], [, b]) => a - b)).toEqual(before);

    const answers = await Promise.all(requests.map(({ answer }) => answer));
    await ledger.close();
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(ledger.served).toEqual(ledger.joined);
    expect(ledger.violations).toEqual([]);
  });

  test('keep the maximum that requests have set if Redis loses its data', async () => {
    const replicas = await start(3, { WINDOW_MILLIS: '600' });
    const key = uniqueKey();
    const ask = (i: number, parameters: string) =>
      requestRate(replicas[i % 3]!.url, key, `maxRequests=2${parameters}`);
    const ledger = await ApprovalLedger.open(redis.client, key, 2);
    await Promise.all([0, 1].map((i) => ask(i, '').answer));
    const requests = Array.from({ length: 9 }, (_, i) => ask(i, '&canWait=true'));
    // A check in flight while Redis loses its data rightly creates the key again, and is approved.
    await until(() => new Set([...ledger.approved, ...ledger.joined]).size === 2 + requests.length);
    await redis.client.flushall();
    await ledger.upToNow();
    // Redis has lost these. A replica that had not yet heard of one of them puts it back.
    const lost = ledger.approved;
    const answers = await Promise.all(requests.map(({ answer }) => answer));
    await ledger.close();
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const isOfLost = (violation: string): boolean =>
      lost.some((id) => violation.includes(`approved ${id} twice`));
    expect(ledger.violations.filter((violation) => !isOfLost(violation))).toEqual([]);
  });

  test('get their places back in a long window if one name of the key is removed', async () => {
    const [replica] = await start(1, {
      MAX_REQUESTS: '1',
      WINDOW_MILLIS: '3600000',
      // So long that the regular settle would come too late.
      REPLICA_LEASE_MILLIS: '6000',
    });
    const lose = async (lost: 'state' | 'queue' | 'waiting' | 'replicas'): Promise<void> => {
      const key = uniqueKey();
      const { state, queue, waiting, replicas, leader } = naming.namesOf(key);
      await requestRate(replica!.url, key).answer;
      const waiter = requestRate(replica!.url, key, 'canWait=true');
      // A replica settles before it volunteers, and asks about its waiter then.
      await until(async () => (await redis.client.exists(`mutex:${leader}`)) === 1);
      const { waiting: before } = await storedQueue(redis.client, naming.namesOf(key));
      await redis.client.del(naming.namesOf(key)[lost]);
      await until(async () => (await redis.client.exists(state, queue, waiting, replicas)) === 4);
      const { waiting: after } = await storedQueue(redis.client, naming.namesOf(key));
      expect([lost, after]).toEqual([lost, before]);
      waiter.disconnect();
    };
    // Each with a key of its own, at the same time: a loss is noticed after a third of a lease.
    await Promise.all((['state', 'queue', 'waiting', 'replicas'] as const).map(lose));
  });

  test('are not overtaken by a check of their replica if Redis loses its data', async () => {
    const [replica] = await start(1, { MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' });
    const key = uniqueKey();
    await requestRate(replica!.url, key).answer;
    const waiting = requestRate(replica!.url, key, 'canWait=true');
    await untilWaiting(replica!.url, key, 1);
    await redis.client.flushall();

    expect((await requestRate(replica!.url, key).answer).status).toBe(429);
    // The lost window was full, and stays full until it ends.
    await until(async () => (await redis.client.hlen(naming.namesOf(key).waiting)) === 1);
    waiting.disconnect();
  });
});
