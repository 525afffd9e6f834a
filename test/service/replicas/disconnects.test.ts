import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { lingeringNames } from '../../support/expiring-names.js';
import { type RateRequest, requestRate, waitingCount } from '../../support/rate-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas, useSharedReplicas } from '../../support/use-replicas.js';

const redis = useRedis();

describe('clients that disconnect', () => {
  const replicas = useSharedReplicas(redis);

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
      await fetch(`${replicas[0]!.url}/rate/${key}/${first.requestId!}`, { method: 'DELETE' });
      return true;
    });
    expect(await staying.answer).toMatchObject({ status: 200 });
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(ledger.inWindow).toBe(1);
  });
});

describe('clients that disconnect, with short windows,', () => {
  const start = useReplicas(redis);

  test('just as they are approved delay no other waiter beyond the window', async () => {
    const replicas = await start(3, { MAX_REQUESTS: '1', WINDOW_MILLIS: '200' });
    const key = uniqueKey();
    const { url } = replicas[0]!;
    const ledger = await ApprovalLedger.open(redis.client, key, 1);
    let holder = (await requestRate(url, key).answer).requestId!;
    for (let round = 0; round < 20; round += 1) {
      const joined = ledger.joined.length;
      const disconnecting = requestRate(replicas[1]!.url, key, 'canWait=true');
      await until(() => ledger.joined.length > joined || ledger.approved.length > round + 1);
      const staying = requestRate(replicas[2]!.url, key, 'canWait=true');
      const released = fetch(`${url}/rate/${key}/${holder}`, { method: 'DELETE' });
      disconnecting.disconnect();
      await released;
      const answer = await staying.answer;
      expect(answer.status).toBe(200);
      holder = answer.requestId!;
    }
    await until(async () => (await waitingCount(url, key)) === 0);
    await ledger.close();
    expect(ledger.violations).toEqual([]);
  });

  test('at any moment do not disturb the order of others, and leave nothing behind', async () => {
    const replicas = await start(3, {
      MAX_REQUESTS: '5',
      WINDOW_MILLIS: '100',
      // Ids of short windows are kept for some leases.
      REPLICA_LEASE_MILLIS: '2000',
    });
    const key = uniqueKey();
    const ledger = await ApprovalLedger.open(redis.client, key, 5);
    const requests: RateRequest[] = Array.from({ length: 150 }, (_, i) =>
      requestRate(replicas[i % 3]!.url, key, 'canWait=true'),
    );
    const disconnecting = requests.filter((_, i) => i % 2 === 0);
    const staying = requests.filter((_, i) => i % 2 === 1);
    let answered = 0;
    const count = (): unknown => (answered += 1);
    for (const { answer } of staying) void answer.then(count, count);
    // If requests arrive slowly, some are approved without a wait.
    await until(() => new Set([...ledger.approved, ...ledger.joined]).size > 25);
    for (const request of disconnecting) {
      const served = ledger.served.length;
      request.disconnect();
      if (disconnecting.indexOf(request) % 10 === 9) {
        await until(() => ledger.served.length > served || answered === staying.length);
      }
    }
    const answers = await Promise.all(staying.map(({ answer }) => answer));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await until(async () => (await waitingCount(replicas[0]!.url, key)) === 0);
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(ledger.served).toEqual(ledger.joined.filter((id) => ledger.served.includes(id)));
    const send = (name: string, ...args: string[]): Promise<unknown> =>
      redis.client.call(name, ...args);
    expect(await lingeringNames(send, `*${key}*`)).toEqual([]);
  });
});
