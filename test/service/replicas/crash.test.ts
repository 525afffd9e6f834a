import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { requestRate, waitingCount } from '../../support/rate-client.js';
import type { ReplicaProcess } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useSharedReplicas } from '../../support/use-replicas.js';

const naming = new KeyNaming('sluice:');

describe('when a replica dies', () => {
  const redis = useRedis();
  /** Those that live through all tests. Each test starts the one that dies. */
  const {
    replicas: living,
    keyOf,
    startAnother,
  } = useSharedReplicas(redis, {
    count: 2,
    limits: {
      'three-an-hour': { max_requests_per_window: 3 },
      'two-in-150': { max_requests_per_window: 2, window_millis: 150 },
    },
    // Long enough for the living replicas to renew their leases on a busy machine.
    environment: { REPLICA_LEASE_MILLIS: '2000' },
  });

  const waitersOf = (key: string): Promise<number> =>
    redis.client.hlen(naming.namesOf(key).waiting);
  const statuses = async (requests: { answer: Promise<{ status: number }> }[]): Promise<number[]> =>
    Promise.all(requests.map(async ({ answer }) => (await answer).status));
  /** Adds waiters one after the other, so that they arrive in the order of the list. */
  const waitOn = async (replicas: ReplicaProcess[], key: string, count: number) => {
    const requests = [];
    for (let i = 0; i < count; i += 1) {
      requests.push(requestRate(replicas[i % replicas.length]!.url, key, 'canWait=true'));
      await until(async () => (await waitersOf(key)) === i + 1);
    }
    return requests;
  };
  const leaseLapsed = (replica: ReplicaProcess, key: string): Promise<unknown> =>
    until(async () => {
      const lease = await redis.client.hget(naming.namesOf(key).replicas, replica.id);
      const [seconds] = await redis.client.time();
      return Number.parseInt(lease!) < Number(seconds) * 1000;
    });

  test('every other waiter is served in order, even if half of the queue dies with it', async () => {
    const dying = await startAnother();
    const key = keyOf('two-in-150');
    const ledger = await ApprovalLedger.open(redis.client, key, 2);
    const requests = Array.from({ length: 60 }, (_, i) =>
      requestRate((i % 2 === 0 ? dying : living[i % 3 === 0 ? 1 : 0]!).url, key, 'canWait=true'),
    );
    await until(() => ledger.joined.length >= 50);
    await dying.kill('SIGKILL');
    expect(await statuses(requests.filter((_, i) => i % 2 === 1))).toEqual(Array(30).fill(200));
    await until(async () => (await redis.client.exists(naming.namesOf(key).queue)) === 0);
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(ledger.served).toEqual(ledger.joined.filter((id) => ledger.served.includes(id)));
  });

  test('its waiters get their places back if it only hung', async () => {
    const stopped = await startAnother();
    const [other] = living;
    const key = uniqueKey();
    const first = await requestRate(other!.url, key).answer;
    const requests = await waitOn([stopped, other!], key, 4);
    stopped.signal('SIGSTOP');
    await leaseLapsed(stopped, key);
    // The head of the queue can not be served, so the next waiter is.
    await fetch(`${other!.url}/rate/${key}/${first.requestId!}`, { method: 'DELETE' });
    const second = await requests[1]!.answer;
    expect(second.status).toBe(200);

    stopped.signal('SIGCONT');
    // The waiter is at the head of the queue again.
    await until(async () => (await waitersOf(key)) === 3);
    await fetch(`${other!.url}/rate/${key}/${second.requestId!}`, { method: 'DELETE' });
    expect(await requests[0]!.answer).toMatchObject({ status: 200 });
    expect(await waitingCount(other!.url, key)).toBe(2);
    for (const request of requests) request.disconnect();
  });
});
