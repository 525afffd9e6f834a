import { startTestApp, type TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApps } from '../../support/use-apps.js';
import { usedMemoryIn } from '../../support/while-full.js';

/**
 * Redis has no memory left from now on. Most of it is ballast, so that the buffers of connections matter little, which Redis
 * makes smaller while these are idle. @returns its maxmemory
 */
async function fill(redis: RedisProcess): Promise<number> {
  await redis.command('SETRANGE', 'ballast', '15000000', '0');
  const maxmemory = Math.floor((await usedMemory(redis)) / 1.03);
  await redis.command('CONFIG', 'SET', 'maxmemory', String(maxmemory));
  return maxmemory;
}

async function usedMemory(redis: RedisProcess): Promise<number> {
  return usedMemoryIn((await redis.command('INFO', 'memory')) as string);
}

describeWithRedisProgram('a service whose Redis has no memory left', () => {
  let redis: RedisProcess;
  let app: TestApp;
  /** A key that has its one approval. */
  let key: string;
  let approved: string;
  beforeEach(async () => {
    redis = await startRedisProcess();
    app = await startTestApp({
      REDIS_URL: redis.url,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      // So long that a busy machine does not look like an outage.
      STORE_TIMEOUT_MILLIS: '10000',
    });
    key = uniqueKey();
    approved = await approve(app.url, key);
    await fill(redis);
  });
  afterEach(async () => {
    await app.stop(0);
    await redis.stop();
  });

  test('fails checks of new keys, and decides on known keys', async () => {
    for (let i = 0; i < 5; i += 1) {
      const answer = await send(app.url, 'POST', ratePath(uniqueKey()));
      expect(answer.status).toBe(503);
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.json()).toMatchObject({ error: 'store full: no room for another key' });
    }
    expect((await send(app.url, 'POST', ratePath(key))).status).toBe(429);
    expect((await send(app.url, 'POST', `${ratePath(key)}?maxRequests=2`)).status).toBe(200);
    expect(await debugState(app.url, key)).toMatchObject({
      NumApprovedThisWindow: 2,
      NumDeniedThisWindow: 1,
    });
    const { series } = await scrape(app.url);
    const failed = series.filter(
      ({ name, value }) => name === 'ratelimit_failed_checks_total' && value > 0,
    );
    expect(failed).toMatchObject([{ labels: { reason: 'store_full' }, value: 5 }]);
  });

  test('lets checks of a known key wait, and serves them', async () => {
    const waiter = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    expect((await send(app.url, 'DELETE', `${ratePath(key)}/${approved}`)).status).toBe(200);
    expect((await waiter.answer).status).toBe(200);
  });

  test('is ready with a warning, and accepts new keys when there is memory again', async () => {
    await send(app.url, 'POST', ratePath(uniqueKey()));
    const readiness = await send(app.url, 'GET', '/readyz');
    expect([readiness.status, readiness.text]).toEqual([
      200,
      'OK\nstore full: checks of new keys fail',
    ]);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await approve(app.url, uniqueKey());
    expect((await send(app.url, 'GET', '/readyz')).text).toBe('OK');
    expect(app.log.find(({ msg }) => msg === 'checks not decided')).toMatchObject({
      level: 'warn',
      undecided: { store_full: 1 },
    });
    expect(app.log.map(({ msg }) => msg)).not.toContain(
      'store is down; not asked until it is up again',
    );
  });
});

describeWithRedisProgram('a service whose Redis may evict keys', () => {
  const start = useApps();
  let redis: RedisProcess;
  afterEach(() => redis.stop());

  test('is ready, and warns in the log and at /readyz until Redis may not', async () => {
    redis = await startRedisProcess({
      configure: () => Promise.resolve(['maxmemory-policy volatile-lru']),
    });
    const app = await start({ ...PATIENT_STORE, REDIS_URL: redis.url });
    const readiness = async (): Promise<string> => (await send(app.url, 'GET', '/readyz')).text;

    expect(await readiness()).toBe(
      'OK\nstore may evict keys by volatile-lru, and limits with them: set noeviction',
    );
    const warnings = app.log.filter(({ msg }) => String(msg).startsWith('Redis may evict keys'));
    expect(warnings).toMatchObject([{ level: 'warn', policy: 'volatile-lru' }]);

    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    // Sluice looks again when it connects again, as after a failover.
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await app.logged(({ msg }) => msg === 'Redis evicts no keys any more');
    expect(await readiness()).toBe('OK');
  });
});
