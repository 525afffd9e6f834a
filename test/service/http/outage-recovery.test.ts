import { setTimeout as delay } from 'node:timers/promises';

import type { TestApp } from '../../support/app.js';
import { debugState } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import {
  changesIn,
  checkUntilLogged,
  policyOf,
  POLICY_DECIDES,
  STORE_BACK,
  STORE_DECIDES,
  STORE_DOWN,
  startWithPolicy,
  STORE_TIMEOUT_MILLIS,
} from '../../support/outage.js';
import { scrape } from '../../support/prometheus-text.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

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

  async function start(policy: string): Promise<void> {
    app = await startWithPolicy(redis, policy);
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

  test('answers the first check at once if Redis has refused connections since the start', async () => {
    await redis.kill();
    await start('deny');
    await app.logged(({ msg }) => msg === 'redis connection failed');
    await delay(STORE_TIMEOUT_MILLIS);
    expect(await check()).toEqual([503, undefined]);
    expect(await scriptCalls()).toBe(0);
    expect(changesIn(app)).toEqual([STORE_DOWN]);
    await redis.restart({ withData: false });
    await app.logged(({ msg }) => msg === STORE_BACK);
    expect(await check()).toEqual([200, undefined]);
  });

  test.each(extent(['local'], ['allow', 'local']))(
    'follows Redis again when it is back, and logs each change once (%s)',
    async (policy) => {
      await start(policy);
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

  test('decides on known keys by a full Redis, and on new keys by the policy', async () => {
    await start('local');
    const key = uniqueKey();
    await approve(app.url, key);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    const refusal = await send(app.url, 'POST', ratePath(key));
    expect([refusal.status, policyOf(refusal)]).toEqual([429, undefined]);
    expect(await check()).toEqual([200, 'local']);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    expect(await check()).toEqual([200, undefined]);

    expect(changesIn(app)).not.toContain(STORE_DOWN);
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
