import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { lingeringNames } from '../../support/expiring-names.js';
import {
  killCommandConnections,
  killSubscriberConnections,
} from '../../support/kill-connections.js';
import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { type RateRequest, requestRate, waitingCount } from '../../support/rate-client.js';
import { storedQueue } from '../../support/stored-queue.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useSharedReplicas } from '../../support/use-replicas.js';

const naming = new KeyNaming('sluice:');

const redis = useRedis();
const { replicas, keyOf } = useSharedReplicas(redis, {
  limits: {
    'five-in-100': { max_requests_per_window: 5, window_millis: 100 },
    // Long enough to put all waiters back in the window in which they were lost.
    'five-in-5000': { max_requests_per_window: 5, window_millis: 5000 },
  },
  // Ids of short windows are kept for some leases, and names that stay for over a minute are leftovers.
  environment: { REPLICA_LEASE_MILLIS: '2000' },
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
      await fetch(`${replicas[0]!.url}/rate/${key}/${first.requestId!}`, { method: 'DELETE' });
      return true;
    });
    expect(await staying.answer).toMatchObject({ status: 200 });
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(ledger.inWindow).toBe(1);
  });

  test('at any moment do not disturb the order of others, and leave nothing behind', async () => {
    const key = keyOf('five-in-100');
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

describe('waiters on three replicas', () => {
  test('are all served in order while every pub/sub connection is cut again and again', async () => {
    const key = keyOf('five-in-100');
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

  test('are put back in the order of their arrival if Redis loses its data', async () => {
    const key = keyOf('five-in-5000');
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
});
