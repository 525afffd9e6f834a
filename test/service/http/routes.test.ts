import { randomUUID } from 'node:crypto';

import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useApp } from '../../support/use-apps.js';

const redis = useRedis();

describe.each(bothLimiters(redis))('routes (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), WINDOW_MILLIS: '3600000' }));

  test('GET /healthz is OK in plain text', async () => {
    const answer = await send(app.url, 'GET', '/healthz');

    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^text\/plain(;|$)/);
    expect(answer.text).toBe('OK');
  });

  test.each(['/healthz', '/readyz', '/metrics', '/debug', '/debug/some-key', '/ui', '/ui/data'])(
    'HEAD %s is 200',
    async (path) => {
      const answer = await send(app.url, 'HEAD', path);

      expect(answer.status).toBe(200);
      expect(answer.text).toBe('');
    },
  );

  test('GET / leads to the dashboard, also below the path of a proxy', async () => {
    const answer = await send(app.url, 'GET', '/?a=b');

    expect([answer.status, answer.headers.location, answer.text]).toEqual([303, 'ui', '']);
  });

  test.each([
    '/rate/',
    '/rate//',
    '/rate//id',
    '/rate/key/',
    '/rate/key/id/more',
    '/RATE/key',
    '/debug/',
    '/debug/key/more',
    '/healthz/',
    '/healthzz',
    '/readyz/',
    '/metrics/',
    '/ui/',
    '/ui/constructor',
    '/ui/data/',
    '/ui/try',
    '/unknown',
    '/constructor',
  ])('%s is not found', async (path) => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const answer = await send(app.url, method, path);

      expect([method, answer.status]).toEqual([method, 404]);
      expect(answer.headers['content-type']).toBe('application/json');
      expect(answer.json()).toStrictEqual({ error: expect.stringContaining(path) as unknown });
    }
  });

  describe.each([
    ['/rate', 'POST, DELETE', ['HEAD', 'GET', 'PUT', 'PATCH', 'OPTIONS', 'PURGE']],
    ['/rate/{key}', 'GET, POST, PUT', ['HEAD', 'PATCH', 'DELETE', 'OPTIONS', 'PURGE']],
    ['/rate/{key}/id', 'DELETE, PUT', ['HEAD', 'GET', 'POST', 'PATCH', 'OPTIONS']],
    [`/rate/{key}/${randomUUID()}`, 'GET, DELETE, PUT', ['HEAD', 'POST', 'PATCH', 'OPTIONS']],
    ['/debug/{key}', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/debug', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/healthz', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/readyz', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/ui', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/ui/data', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/metrics', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
  ])('%s', (template, allow, methods) => {
    test.each(methods)(`does not allow %s, and says that it allows ${allow}`, async (method) => {
      const key = uniqueKey();
      const answer = await send(app.url, method, template.replace('{key}', key));

      expect(answer.status).toBe(405);
      expect(answer.headers.allow).toBe(allow);
      expect(answer.headers['content-type']).toBe('application/json');
      if (method !== 'HEAD') {
        const error: unknown = expect.stringContaining(method);
        expect(answer.json()).toStrictEqual(
          template.includes('{key}') ? { error, key } : { error },
        );
      }
      expect(await debugState(app.url, key)).toStrictEqual({ Key: key, Found: false });
    });
  });
});
