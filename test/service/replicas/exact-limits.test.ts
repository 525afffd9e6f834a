import { asServer, forgetScripts } from '../../support/forget-scripts.js';
import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { killCommandConnections } from '../../support/kill-connections.js';
import { requestRate } from '../../support/rate-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas, useSharedReplicas } from '../../support/use-replicas.js';

const redis = useRedis();

describe('three replicas on one Redis', () => {
  const replicas = useSharedReplicas(redis);

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

  test('lose nothing if Redis forgets its scripts in between', async () => {
    const key = uniqueKey();
    const statuses: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const requests = Array.from({ length: 10 }, (_, i) =>
        requestRate(replicas[i % 3]!.url, key, 'maxRequests=50'),
      );
      await forgetScripts(asServer(redis.client));
      for (const { answer } of requests) statuses.push((await answer).status);
    }
    expect(statuses.filter((status) => status === 200)).toHaveLength(50);
    expect(statuses.filter((status) => status === 429)).toHaveLength(50);
  });

  test('count no request twice if their connections are cut and calls are sent again', async () => {
    const key = uniqueKey();
    const ledger = await ApprovalLedger.open(redis.client, key, 40);
    const statuses: number[] = [];
    const ids: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const requests = Array.from({ length: 30 }, (_, i) =>
        requestRate(replicas[i % 3]!.url, key, 'maxRequests=40'),
      );
      await killCommandConnections(redis.client);
      for (const { answer } of requests) {
        const { status, requestId } = await answer;
        statuses.push(status);
        if (requestId !== undefined) ids.push(requestId);
      }
    }
    expect(statuses.every((status) => [200, 429, 503].includes(status))).toBe(true);
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeLessThanOrEqual(40);
    expect(ids.every((id) => ledger.approved.includes(id))).toBe(true);
  });
});

describe('three replicas on one Redis, with short windows,', () => {
  const start = useReplicas(redis);

  test('keep the limit in each of many windows, with checks, waits and releases', async () => {
    const replicas = await start(3, {
      MAX_REQUESTS: '5',
      WINDOW_MILLIS: '100',
      MAX_REQUESTS_IN_QUEUE: '10',
    });
    const key = uniqueKey();
    const ledger = await ApprovalLedger.open(redis.client, key, 5);
    const client = async (index: number): Promise<void> => {
      const { url } = replicas[index % 3]!;
      // On a slower machine fewer checks have to wait in a window.
      while (ledger.windows < 20 || ledger.served.length <= 20) {
        const query = index % 2 === 0 ? 'canWait=true' : '';
        const { status, requestId } = await requestRate(url, key, query).answer;
        expect([200, 429]).toContain(status);
        if (requestId !== undefined && index % 3 === 0) {
          await fetch(`${url}/rate/${key}/${requestId}`, { method: 'DELETE' });
        }
      }
    };
    await Promise.all(Array.from({ length: 24 }, (_, index) => client(index)));
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(ledger.served.length).toBeGreaterThan(20);
  });
});
