import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { ratePath, send } from '../../support/http-client.js';
import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { requestRate, waitingCount, waitInTurn } from '../../support/rate-client.js';
import type { ReplicaProcess } from '../../support/replica-process.js';
import { storedQueue } from '../../support/stored-queue.js';
import { countStoredWaiters } from '../../support/stored-waiters.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas } from '../../support/use-replicas.js';

const naming = new KeyNaming('sluice:');

const redis = useRedis();
const start = useReplicas(redis, afterAll);

let replicas: ReplicaProcess[];
beforeAll(async () => {
  // Long enough to renew leases on a busy machine.
  const REPLICA_LEASE_MILLIS = '2000';
  replicas = await start(3, { MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000', REPLICA_LEASE_MILLIS });
});

describe('three replicas on one Redis', () => {
  test('approve exactly the maximum if a thousand checks come at once', async () => {
    const key = uniqueKey();
    const answers = await Promise.all(
      Array.from(
        { length: 1000 },
        (_, i) => requestRate(replicas[i % 3]!.url, key, 'maxRequests=250').answer,
      ),
    );
    const approved = answers.filter(({ status }) => status === 200);
    expect(approved).toHaveLength(250);
    expect(new Set(approved.map(({ requestId }) => requestId)).size).toBe(250);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(750);
  });
});

describe('clients that disconnect', () => {
  test.each([
    ['before the queue has them', 0],
    ['while they wait', 1],
  ])('%s use no capacity', async (_when, joinedBefore) => {
    const key = uniqueKey();
    const first = await requestRate(replicas[0]!.url, key).answer;
    const ledger = await ApprovalLedger.open(redis.client, key, 1);
    const disconnecting = Array.from({ length: 30 }, (_, i) =>
      requestRate(replicas[i % 3]!.url, key, 'canWait=true'),
    );
    if (joinedBefore > 0) await until(() => ledger.joined.length === disconnecting.length);
    for (const request of disconnecting) request.disconnect();
    const staying = requestRate(replicas[1]!.url, key, 'canWait=true');
    await until(async () => {
      if ((await waitingCount(replicas[0]!.url, key)) !== 1) return false;
      await send(replicas[0]!.url, 'DELETE', `${ratePath(key)}/${first.requestId!}`);
      return true;
    });
    expect(await staying.answer).toMatchObject({ status: 200 });
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(ledger.inWindow).toBe(1);
  });
});

describe('waiters on three replicas', () => {
  test('are put back in the order of their arrival if Redis loses its data', async () => {
    const key = uniqueKey();
    const names = naming.namesOf(key);
    // Long enough to put all waiters back in the window in which they were lost.
    const query = '&maxRequests=9&windowMillis=9000';
    await Promise.all(
      Array.from({ length: 9 }, (_, i) => requestRate(replicas[i % 3]!.url, key, query).answer),
    );
    const ledger = await ApprovalLedger.open(redis.client, key, 9);
    const requests = await waitInTurn(replicas, key, 9, query);
    const { waiting: before } = await storedQueue(redis.client, names);
    await redis.client.flushall();
    await until(async () => (await countStoredWaiters(redis.client, names)) === before.length);
    const { waiting: after } = await storedQueue(redis.client, names);
    expect([...after].sort(([, a], [, b]) => a - b)).toEqual(before);

    const answers = await Promise.all(requests.map(({ answer }) => answer));
    await ledger.close();
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(ledger.served).toEqual(ledger.joined);
    expect(ledger.violations).toEqual([]);
  });

  test('get their places back if their replica only hung', async () => {
    const [hanging, other] = replicas as [ReplicaProcess, ReplicaProcess];
    const key = uniqueKey();
    const { requestId: first } = await requestRate(other.url, key).answer;
    const requests = await waitInTurn(replicas, key, 4);
    const release = (id: string) => send(other.url, 'DELETE', `${ratePath(key)}/${id}`);
    hanging.signal('SIGSTOP');
    await until(async () => {
      const lease = await redis.client.hget(naming.namesOf(key).replicas, hanging.id);
      const [seconds] = await redis.client.time();
      return Number.parseInt(lease!) < Number(seconds) * 1000;
    });
    // The head of the queue can not be served, so the next waiter is.
    await release(first!);
    const second = await requests[1]!.answer;
    expect(second.status).toBe(200);

    hanging.signal('SIGCONT');
    // The waiter is at the head of the queue again.
    await until(async () => (await countStoredWaiters(redis.client, naming.namesOf(key))) === 3);
    await release(second.requestId!);
    expect(await requests[0]!.answer).toMatchObject({ status: 200 });
    expect(await waitingCount(other.url, key)).toBe(2);
    for (const request of requests) request.disconnect();
  });
});
