import { setTimeout as delay } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import { ApprovalLedger } from '../support/monitor/approval-ledger.js';
import { describeWithRedisProgram } from '../support/describe-with-redis-program.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { ratePath } from '../support/http-client.js';
import { requestRate } from '../support/rate-client.js';
import { type RedisProcess, startRedisProcess } from '../support/redis-process.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../support/replica-process.js';
import { uniqueKey } from '../support/unique-key.js';
import { until } from '../support/until.js';

const MAX_REQUESTS = 10;
const WAITERS = 300;

describeWithRedisProgram('a waiter is approved once', () => {
  let server: RedisProcess;
  let client: Redis;
  let proxies: FaultProxy[];
  beforeAll(async () => {
    server = await startRedisProcess();
    client = server.connect();
    proxies = await Promise.all([1, 2, 3].map(() => startFaultProxy(server.port)));
  });
  afterAll(() => {
    for (const proxy of proxies) proxy.stop();
    client.disconnect();
  });

  /**
   * Half of the waiters ask while the key is paused, so that they wait, and the others as it goes on. `disturb` runs until all
   * have their answers.
   */
  async function serveAll(
    replicas: readonly ReplicaProcess[],
    waiters: number,
    disturb: (isOver: () => boolean) => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const key = uniqueKey();
    const ledger = await ApprovalLedger.open(client, key, MAX_REQUESTS);
    const ask = (count: number) =>
      Array.from({ length: count }, (_, i) => {
        const replica = replicas[i % replicas.length]!;
        return requestRate(replica.url, key, 'canWait=true').answer;
      });
    const pause = async (millis: number) => {
      const url = `${replicas[0]!.url}${ratePath(key)}?pauseMillis=${millis}`;
      expect((await fetch(url, { method: 'PUT' })).status).toBe(200);
    };
    const askAll = async () => {
      await pause(3_600_000);
      const early = ask(waiters / 2);
      await until(() => ledger.joined.length === early.length);
      const late = ask(waiters - early.length);
      await pause(0);
      return Promise.all([...early, ...late]);
    };
    let isOver = false;
    const answered = askAll().finally(() => {
      isOver = true;
    });
    const [answers] = await Promise.all([answered, disturb(() => isOver)]);
    await ledger.close();
    expect(ledger.violations).toEqual([]);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const approved = new Set(ledger.approved);
    const unknown = answers.flatMap(({ requestId = '' }) =>
      approved.has(requestId) ? [] : [requestId],
    );
    expect(unknown.map((id) => [id, ledger.commandsOf(id)])).toEqual([]);
    // Each approval reached the client that asked for it, and no other.
    expect(answers.map(({ requestId }) => requestId).sort()).toEqual([...ledger.approved].sort());
    expect(ledger.served).toEqual(ledger.joined);
    expect(ledger.served.length).toBeGreaterThanOrEqual(waiters / 2);
  }

  describe.each([1, 5, 20, 50, 200])('in windows of %d ms', (windowMillis) => {
    let replicas: ReplicaProcess[];
    beforeAll(async () => {
      replicas = await Promise.all(
        proxies.map((proxy) =>
          startReplica({
            REDIS_URL: proxy.url,
            WINDOW_MILLIS: String(windowMillis),
            MAX_REQUESTS: String(MAX_REQUESTS),
            // These tests are not about the speed of a busy machine.
            STORE_TIMEOUT_MILLIS: '30000',
          }),
        ),
      );
    });
    afterEach(() => {
      for (const proxy of proxies) proxy.toClient.delayMessages(0);
    });
    afterAll(killReplicas);

    test('if nothing is late', () => serveAll(replicas, WAITERS));

    test('while replicas and Redis hang in turn for one to five windows', async () => {
      await serveAll(replicas, WAITERS, async (isOver) => {
        for (let round = 0; !isOver(); round += 1) {
          const millis = windowMillis * (1 + (round % 5));
          await standStill(replicas[round % replicas.length]!, millis);
          await standStill(server, millis);
        }
      });
    });

    test('if messages reach one replica three windows late, and another five', async () => {
      const [, late, later] = proxies;
      late!.toClient.delayMessages(3 * windowMillis);
      later!.toClient.delayMessages(5 * windowMillis);
      await serveAll(replicas, WAITERS);
    });
  });
});

async function standStill(
  process: { signal(signal: 'SIGSTOP' | 'SIGCONT'): void },
  millis: number,
): Promise<void> {
  process.signal('SIGSTOP');
  await delay(millis);
  process.signal('SIGCONT');
  await delay(millis);
}
