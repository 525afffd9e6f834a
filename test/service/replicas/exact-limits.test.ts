import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { killCommandConnections } from '../../support/kill-connections.js';
import { requestRate, waitingCount } from '../../support/rate-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useSharedReplicas } from '../../support/use-replicas.js';

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

  test('bound a queue over all of them together', async () => {
    const key = uniqueKey();
    await requestRate(replicas[0]!.url, key).answer;
    const requests = Array.from({ length: 30 }, (_, i) =>
      requestRate(replicas[i % 3]!.url, key, 'canWait=true&maxRequestsInQueue=7'),
    );
    const refused: number[] = [];
    for (const { answer } of requests)
      void answer.then(
        ({ status }) => refused.push(status),
        () => undefined,
      );
    await until(() => refused.length === 23);
    expect(refused).toEqual(refused.map(() => 429));
    expect(await waitingCount(replicas[1]!.url, key)).toBe(7);
    for (const request of requests) request.disconnect();
    await until(async () => (await waitingCount(replicas[1]!.url, key)) === 0);
  });
});
