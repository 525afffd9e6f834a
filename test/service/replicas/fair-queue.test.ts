import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { requestRate, waitingCount } from '../../support/rate-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas, useSharedReplicas } from '../../support/use-replicas.js';

const redis = useRedis();

describe('the queue across three replicas', () => {
  const start = useReplicas(redis);

  test('serves 300 waiters in the order in which they reached Redis', async () => {
    const replicas = await start(3, { MAX_REQUESTS: '30', WINDOW_MILLIS: '200' });
    const key = uniqueKey();
    const ledger = await ApprovalLedger.open(redis.client, key, 30);
    const requests = Array.from({ length: 330 }, (_, i) =>
      requestRate(replicas[i % 3]!.url, key, 'canWait=true'),
    );
    const answers = await Promise.all(requests.map(({ answer }) => answer));
    await ledger.close();

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(ledger.violations).toEqual([]);
    expect(ledger.served).toEqual(ledger.joined);
    expect(ledger.served.length).toBeGreaterThanOrEqual(270);
    // Each approval reached the client that asked for it, and no other.
    expect(answers.map(({ requestId }) => requestId).sort()).toEqual([...ledger.approved].sort());
  });

  test('keeps each key to itself when many keys have waiters', async () => {
    const replicas = await start(3, { MAX_REQUESTS: '2', WINDOW_MILLIS: '100' });
    const keys = Array.from({ length: 20 }, uniqueKey);
    const answers = await Promise.all(
      keys.flatMap((key) =>
        Array.from(
          { length: 9 },
          (_, i) => requestRate(replicas[i % 3]!.url, key, 'canWait=1').answer,
        ),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });
});

describe('the queue across three replicas, while no window ends,', () => {
  const replicas = useSharedReplicas(redis);

  test('wakes the head of the queue on another replica when an approval is released', async () => {
    const [first, second] = replicas;
    const key = uniqueKey();
    const { requestId } = await requestRate(first!.url, key).answer;
    const waiter = requestRate(second!.url, key, 'canWait=true');
    await until(async () => (await waitingCount(first!.url, key)) === 1);
    await fetch(`${first!.url}/rate/${key}/${requestId!}`, { method: 'DELETE' });
    expect(await waiter.answer).toMatchObject({ status: 200 });
  });

  test('is bounded over all replicas together', async () => {
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
