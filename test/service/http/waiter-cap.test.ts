import { type TestApp, startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, begin, type PendingRequest, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

async function expectTooMany(app: TestApp, key: string): Promise<void> {
  const answer = await send(app.url, 'POST', `${ratePath(key)}?canWait=true`);

  expect(answer.status).toBe(503);
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  expect(answer.json()).toStrictEqual({ error: 'too many waiters on this replica', key });
}

async function failedForWaiters(app: TestApp): Promise<number> {
  const all = await scrape(app.url);
  return all.value('ratelimit_failed_checks_total', { reason: 'too_many_waiters' });
}

describe.each(bothLimiters(redis))(
  'a replica with MAX_WAITERS=2 (%s limiter)',
  (_name, settings) => {
    let app: TestApp;
    let keys: string[];
    let waiting: PendingRequest[];
    beforeEach(async () => {
      app = await startTestApp({
        ...settings(),
        WINDOW_MILLIS: '3600000',
        MAX_REQUESTS: '1',
        MAX_WAITERS: '2',
      });
      keys = [uniqueKey(), uniqueKey()];
      waiting = [];
      for (const key of keys) {
        await approve(app.url, key);
        waiting.push(begin(app.url, 'POST', `${ratePath(key)}?canWait=true`));
        await untilWaiting(app.url, key, 1);
      }
    });
    afterEach(async () => {
      for (const request of waiting) request.disconnect();
      await app.stop(0);
    });

    test('holds two waiters of any keys, and fails a third', async () => {
      await expectTooMany(app, keys[0]!);

      expect(await debugState(app.url, keys[0]!)).toMatchObject({
        NumApprovedThisWindow: 1,
        NumDeniedThisWindow: 0,
        NumWaiting: 1,
      });
      expect(await failedForWaiters(app)).toBe(1);
    });

    test('approves a third at once if its key has room', async () => {
      await approve(app.url, uniqueKey(), '?canWait=true');

      expect(await failedForWaiters(app)).toBe(0);
    });

    test('goes on deciding checks that can not wait', async () => {
      expect((await send(app.url, 'POST', ratePath(keys[0]!))).status).toBe(429);
      await approve(app.url, uniqueKey());

      expect(await failedForWaiters(app)).toBe(0);
    });

    test('holds another waiter when one has disconnected', async () => {
      waiting[1]!.disconnect();
      await until(async () => (await scrape(app.url)).value('ratelimit_waiting') === 1);
      waiting.push(begin(app.url, 'POST', `${ratePath(keys[0]!)}?canWait=true`));
      await untilWaiting(app.url, keys[0]!, 2);

      await expectTooMany(app, keys[1]!);
    });

    test('serves the waiters that it holds', async () => {
      await expectTooMany(app, keys[0]!);
      expect((await send(app.url, 'POST', `${ratePath(keys[0]!)}?maxRequests=2`)).status).toBe(429);

      expect((await waiting[0]!.answer).status).toBe(200);
    });
  },
);

describe.each(bothLimiters(redis))(
  'a replica with MAX_WAITERS=0 (%s limiter)',
  (_name, settings) => {
    test('lets no check wait, and decides all that need not', async () => {
      const app = await startTestApp({ ...settings(), MAX_WAITERS: '0' });
      const key = uniqueKey();
      await approve(app.url, key, '?maxRequests=1&canWait=true');
      await expectTooMany(app, key);
      await app.stop(0);
    });
  },
);

describe.each(bothLimiters(redis))('many waiters at once (%s limiter)', (_name, settings) => {
  test('are held only up to the cap', async () => {
    const app = await startTestApp({
      ...settings(),
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      MAX_WAITERS: '5',
    });
    const key = uniqueKey();
    await approve(app.url, key);
    const requests = Array.from({ length: 20 }, () =>
      begin(app.url, 'POST', `${ratePath(key)}?canWait=true`),
    );
    await until(async () => (await failedForWaiters(app)) === 15);
    await untilWaiting(app.url, key, 5);
    await app.stop(0);
    const errors = await Promise.all(
      requests.map(async ({ answer }) => ((await answer).json() as { error: string }).error),
    );

    expect(errors.filter((error) => error === 'shutting down')).toHaveLength(5);
    expect(errors.filter((error) => error === 'too many waiters on this replica')).toHaveLength(15);
  });
});
