import { bothLimiters } from '../../support/both-limiters.js';
import { type Answer, send } from '../../support/http-client.js';
import { useRedis } from '../../support/use-redis.js';
import { useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

const redis = useRedis();

function expectForBrowsers({ headers }: Answer): void {
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  });
}

describe.each(bothLimiters(redis))('answers to a browser (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));

  test.each([
    '/debug',
    '/debug/some-key',
    '/debug/%zz',
    '/metrics',
    '/healthz',
    '/readyz',
    '/ui/data',
    '/ui/data/key?key=some-key',
  ])('%s runs no scripts, and is not cached', async (path) => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(app.url, method, path);

      expect(answer.status).toBe(200);
      expectForBrowsers(answer);
    }
  });

  test.each([
    [400, 'GET', '/rate/key?canWait=x'],
    [400, 'GET', '/rate/%zz'],
    [404, 'GET', '/<script>alert(1)</script>'],
    [404, 'DELETE', '/rate/key/unknown'],
    [405, 'POST', '/debug'],
    [400, 'DELETE', '/debug/%zz'],
  ])('an error runs no scripts, and is not cached: %d to %s %s', async (status, method, path) => {
    const answer = await send(app.url, method, path);

    expect(answer.status).toBe(status);
    expectForBrowsers(answer);
  });
});

test('answers to a browser have the same headers while the store is down', async () => {
  const app = await start({ REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200' });
  const answers = await Promise.all(
    ['/debug', '/debug/key', '/readyz', '/rate/key'].map((path) => send(app.url, 'GET', path)),
  );

  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503]);
  for (const answer of answers) expectForBrowsers(answer);
});
