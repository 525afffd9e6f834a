import { randomUUID } from 'node:crypto';

import type { Decision, Limiter } from '../../../src/limiter/limiter.js';
import type { TestApp } from '../../support/app.js';
import {
  keyPath,
  keysOf,
  type Overview,
  overviewOf,
} from '../../support/dashboard/dashboard-page.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import {
  type Answer,
  approve,
  begin,
  checkTimes,
  ratePath,
  send,
} from '../../support/http-client.js';
import {
  changesIn,
  checkUntilLogged,
  POLICY_DECIDES,
  policyOf,
  startWithPolicy,
  STORE_BACK,
  STORE_DECIDES,
  STORE_DOWN,
} from '../../support/outage.js';
import { scrape } from '../../support/prometheus-text.js';
import { quotaOf } from '../../support/quota.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { startRedisServer } from '../../support/redis-server.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';

const start = useApps();

test('a client that waits when Redis goes down can disconnect, and is logged as usual', async () => {
  const server = await startRedisServer();
  const app = await start({
    REDIS_URL: server.url,
    STORE_TIMEOUT_MILLIS: '1000',
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
  });
  const key = uniqueKey();
  await approve(app.url, key);
  const waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true`);
  await untilWaiting(app.url, key, 1);
  await server.stop();
  waiting.disconnect();

  const line = await app.logged(({ status }) => status === 499);
  expect(line).toMatchObject({ level: 'info', key });
});

const ALL_POLICIES: [policy: string, status: number, header: string | undefined][] = [
  ['deny', 503, undefined],
  ['allow', 200, 'allow'],
  ['local', 200, 'local'],
];
/** Ordinary tests run a policy that fails checks, and one that decides. */
const POLICIES = ALL_POLICIES.filter(([policy]) => extent(policy !== 'allow', true));

describeWithRedisProgram('a service whose Redis goes down', () => {
  let redis: RedisProcess;
  let app: TestApp;
  beforeEach(async () => {
    redis = await startRedisProcess();
  });
  afterEach(async () => {
    await app.stop(0);
    await redis.stop();
  });

  async function start(policy: string, timeoutMillis?: number): Promise<void> {
    app = await startWithPolicy(redis, policy, timeoutMillis);
  }

  /** A check of a new key: its status, and the policy that has decided it. */
  async function check(): Promise<[status: number, policy: unknown]> {
    const answer = await send(app.url, 'POST', ratePath(uniqueKey()));
    return [answer.status, policyOf(answer)];
  }

  async function scriptCalls(): Promise<number> {
    const { value } = (await scrape(app.url)).series.find(
      ({ name, labels }) =>
        name === 'ratelimit_store_duration_seconds_count' && labels.script === 'check',
    )!;
    return value;
  }

  test.each(POLICIES)(
    'does not ask Redis while it is known to be down, under the policy %s',
    async (policy, status, header) => {
      await start(policy);
      await redis.kill();
      await checkUntilLogged(app, STORE_DOWN);
      const before = await scriptCalls();
      const answers = await Promise.all(Array.from({ length: 300 }, check));

      expect(new Set(answers.map((answer) => answer.join()))).toEqual(
        new Set([[status, header].join()]),
      );
      expect(await scriptCalls()).toBe(before);
      const changes = policy === 'deny' ? [STORE_DOWN] : [POLICY_DECIDES, STORE_DOWN];
      expect(changesIn(app).sort()).toEqual(changes.sort());
      expect((await scrape(app.url)).value('ratelimit_store_breakers_open')).toBe(1);
    },
  );

  test.each(extent(['local'], ['allow', 'local']))(
    'follows Redis again when it is back, and logs each change once (%s)',
    async (policy) => {
      // If Redis refuses connections for so long before the first check, the log has the outage before the policy.
      await start(policy, 3000);
      const changes: string[] = [];
      for (let outage = 1; outage <= 2; outage += 1) {
        await redis.kill();
        await checkUntilLogged(app, STORE_DOWN, outage);
        expect(await check()).toEqual([200, policy]);
        await redis.restart({ withData: false });
        await checkUntilLogged(app, STORE_DECIDES, outage);
        changes.push(POLICY_DECIDES, STORE_DOWN, STORE_BACK, STORE_DECIDES);
        expect(changesIn(app)).toEqual(changes);

        const key = uniqueKey();
        await approve(app.url, key);
        const refusal = await send(app.url, 'POST', ratePath(key));
        expect([refusal.status, policyOf(refusal)]).toEqual([429, undefined]);
        expect(await redis.command('HGET', `sluice:{${key}}`, 'denied')).toBe('1');
      }
    },
  );

  test('follows Redis again after a standstill, and releases approvals whose replies came too late', async () => {
    await start('allow');
    const key = uniqueKey();
    await check();
    redis.signal('SIGSTOP');
    expect(policyOf(await send(app.url, 'POST', ratePath(key)))).toBe('allow');
    await checkUntilLogged(app, STORE_DOWN);
    redis.signal('SIGCONT');
    await app.logged(({ msg }) => msg === STORE_BACK);

    // The late check creates the key. No approvals show that the check's own was released.
    await until(async () => {
      const { Found, NumApprovedThisWindow } = await debugState(app.url, key);
      return Found && NumApprovedThisWindow === 0;
    });
    expect(await check()).toEqual([200, undefined]);
  });

  test('an answer that the policy does not decide does not name it', async () => {
    await start('local');
    await redis.kill();
    await checkUntilLogged(app, STORE_DOWN);
    const path = ratePath(uniqueKey());
    const answers = [
      [200, await send(app.url, 'GET', '/healthz')],
      [503, await send(app.url, 'GET', '/readyz')],
      [400, await send(app.url, 'POST', `${path}?canWait=x`)],
      [405, await send(app.url, 'HEAD', path)],
      [404, await send(app.url, 'GET', '/unknown')],
      [503, await send(app.url, 'DELETE', `${path}/${randomUUID()}`)],
    ] as const;

    for (const [status, answer] of answers) {
      expect([answer.status, policyOf(answer)]).toEqual([status, undefined]);
    }
  });

  test.each(POLICIES)(
    'or was down at the start, is alive and recovers, under the policy %s',
    async (policy, status, header) => {
      await redis.kill();
      await start(policy);
      const health = await send(app.url, 'GET', '/healthz');
      expect([health.status, health.text]).toEqual([200, 'OK']);
      const readiness = await send(app.url, 'GET', '/readyz');
      expect([readiness.status, readiness.text]).toEqual([503, 'store unavailable']);
      expect(await check()).toEqual([status, header]);
      await checkUntilLogged(app, STORE_DOWN);
      expect(await check()).toEqual([status, header]);

      await redis.restart({ withData: false });
      await until(async () => (await send(app.url, 'GET', '/readyz')).status === 200);
      await app.logged(({ msg }) => msg === STORE_BACK);
      expect(await check()).toEqual([200, undefined]);
    },
  );
});

const APPROVED: Decision = {
  outcome: 'approved',
  requestId: 'a4e5d9b1-206d-4df5-bff1-7f4662b31529',
};
const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1) };

async function answerTo(
  decision: Decision,
): Promise<{ answer: Answer; decidedBy: string | undefined }> {
  const limiter = { waiting: () => 0, check: () => Promise.resolve(decision) } as Partial<Limiter>;
  const app = await serve(httpAppOver(limiter as Limiter));
  const answer = await send(app.url, 'POST', '/rate/key');
  const metrics = await scrape(app.url);
  await app.close();
  const decided = metrics.series.find(
    ({ name, value }) => name === 'ratelimit_decisions_total' && value === 1,
  );
  return { answer, decidedBy: decided?.labels.decided_by };
}

test.each<[status: number, policy: 'allow' | 'local', decision: Decision]>([
  [200, 'allow', { ...APPROVED, outagePolicy: 'allow' }],
  [200, 'local', { ...APPROVED, outagePolicy: 'local' }],
  [429, 'local', { ...DENIED, outagePolicy: 'local' }],
])('a %d under the policy %s says so, and is counted as such', async (status, policy, decision) => {
  const { answer, decidedBy } = await answerTo(decision);

  expect(answer.status).toBe(status);
  expect(answer.headers['x-sluice-outage-policy']).toBe(policy);
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.headers['retry-after']).toBe(status === 429 ? '1' : undefined);
  expect(decidedBy).toBe(policy);
});

test('a store that could never be read is reported, and hides nothing else', async () => {
  const app = await start({ REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200' });
  const overview = await overviewOf(app.url, { search: 'key' });

  expect(overview).toMatchObject({ isComplete: false, asOfMillis: null, keys: [] });
  expect(overview.problems).toEqual(['store unavailable']);
  expect(overview.survey).toMatchObject({ failure: 'unavailable', isComplete: false });
  expect(overview.replicas).toHaveLength(1);
});

test.each(['deny', 'local'])(
  'in an outage what the store counts stays as it was known last, and what this replica approves alone is shown (%s)',
  async (policy) => {
    const server = await startRedisServer();
    const settings = {
      REDIS_URL: server.url,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '2',
      STORE_OUTAGE_POLICY: policy,
      STORE_TIMEOUT_MILLIS: '1000',
    };
    const [app, other] = await Promise.all([start(settings), start(settings)]);
    await checkTimes(app.url, 'key', 2);
    await checkTimes(other.url, 'key', 1);
    const isKnown = ({ replicas, keys }: Overview): boolean =>
      replicas.length === 2 && keys[0]?.states[0] === 'denied';
    const before = await until(async () => {
      const overview = await overviewOf(app.url);
      return isKnown(overview) && overview;
    });
    expect(before).toMatchObject({ isComplete: true, asOfMillis: before.nowMillis });
    await server.stop();
    await checkTimes(app.url, 'new', 2);
    const keys = policy === 'deny' ? ['key'] : ['key', 'new'];
    const after = await until(async () => {
      const overview = await overviewOf(app.url);
      return !overview.isComplete && overview.keys.length >= keys.length && overview;
    });

    expect(keysOf(after.keys)).toEqual(keys);
    expect(after.keys[0]).toMatchObject({
      ...{ states: ['denied', 'used'], isCurrent: false, denied: 1 },
      limits: [{ used: 2 }],
    });
    for (const row of after.keys.slice(1)) {
      expect(row).toMatchObject({ states: ['used'], isCurrent: false, limits: [{ used: 0 }] });
    }
    expect(after.survey.keys).toBe(keys.length);
    expect(after.asOfMillis).toBeLessThanOrEqual(before.nowMillis);
    expect(after.replicas.map(({ replica }) => replica).sort()).toEqual(
      before.replicas.map(({ replica }) => replica).sort(),
    );
    expect(after.replicas[1]).toMatchObject({ decisions: before.replicas[1]!.decisions });
    expect(after.replicas[0]!.reportedMillis).toBe(0);
    expect(after.replicas[1]!.reportedMillis).toBeGreaterThan(0);
    const detail = await send(app.url, 'GET', keyPath('/ui/data/key', 'new'));
    if (policy === 'deny') expect(detail.status).toBe(503);
    else expect(detail.json()).toMatchObject({ isCurrent: false, limits: [{ used: 2 }] });
  },
);
