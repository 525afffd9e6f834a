import { randomUUID } from 'node:crypto';

import type { TestApp } from '../../support/app.js';
import { debugState } from '../../support/debug-state.js';
import { holdEventLoop } from '../../support/hold-event-loop.js';
import { type Answer, approve, ratePath, send } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { type OwnApp, useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

describe('routes', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000' }));

  test('GET / leads to the dashboard, also below the path of a proxy', async () => {
    const answer = await send(app.url, 'GET', '/?a=b');

    expect([answer.status, answer.headers.location, answer.text]).toEqual([303, 'ui', '']);
  });

  test.each([
    '/rate/',
    '/rate//id',
    '/rate/key/id/more',
    '/RATE/key',
    '/debug/',
    '/debug/key/more',
    '/ui/constructor',
    '/ui/try',
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
    ['/rate/{key}/holders/0123456789abcdef', 'DELETE', ['HEAD', 'GET', 'POST', 'PUT']],
    ['/debug/{key}', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/ui/data', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
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

function readyz(app: TestApp): Promise<Answer> {
  return send(app.url, 'GET', '/readyz');
}

test('GET /readyz is 503 while the event loop is delayed, and each change is logged once', async () => {
  const app = await start({ MAX_EVENT_LOOP_DELAY_MILLIS: '200' });
  // Each tick takes longer than the limit.
  const busy = setInterval(holdEventLoop, 0, 300);
  const overloaded = await until(async () => {
    const answer = await readyz(app);
    return answer.status !== 200 && answer;
  });
  clearInterval(busy);
  await until(async () => (await readyz(app)).status === 200);

  const reason: unknown = expect.stringMatching(/^event loop delayed by \d+ ms$/);
  expect([overloaded.status, overloaded.text]).toEqual([503, reason]);
  const lines = app.log.filter(({ msg }) => msg === 'not ready' || msg === 'ready again');
  expect(lines).toMatchObject([{ msg: 'not ready', reasons: [reason] }, { msg: 'ready again' }]);
});

async function statuses(url: string, paths: readonly string[]): Promise<Record<string, number>> {
  const answers = paths.map(async (path) => [path, (await send(url, 'GET', path)).status] as const);
  return Object.fromEntries(await Promise.all(answers));
}

describe('with an admin port', () => {
  let app: OwnApp;
  beforeEach(async () => {
    const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
    app = await start({ ...hour, ADMIN_PORT: '0' });
  });

  test('both ports are in the log', () => {
    const { msg, port, adminPort } = app.log[0]!;

    expect(msg).toBe('serving');
    expect([`http://127.0.0.1:${String(port)}`, `http://127.0.0.1:${String(adminPort)}`]).toEqual([
      app.url,
      app.adminUrl,
    ]);
  });

  test('only the main port serves checks and releases', async () => {
    const key = uniqueKey();
    const id = await approve(app.url, key);
    for (const method of ['GET', 'POST', 'DELETE']) {
      for (const path of [ratePath(key), `${ratePath(key)}/${id}`, '/rate/%zz']) {
        const answer = await send(app.adminUrl, method, path);

        expect([method, path, answer.status]).toEqual([method, path, 404]);
        expect(answer.json()).toStrictEqual({ error: expect.stringContaining(path) as unknown });
      }
    }

    expect((await send(app.url, 'DELETE', `${ratePath(key)}/${id}`)).status).toBe(200);
  });

  test('only the admin port shows keys and metrics', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const paths = [
      ...['/debug', `/debug/${key}`, '/debug/%zz', '/metrics'],
      ...['/ui', '/ui/main.js', '/ui/data', '/ui/data/key?key=a'],
    ];

    expect(Object.values(await statuses(app.url, paths))).toEqual(paths.map(() => 404));
    expect(Object.values(await statuses(app.adminUrl, paths))).toEqual(paths.map(() => 200));
    const { json } = await send(app.adminUrl, 'GET', `/debug/${key}`);
    expect(json()).toMatchObject({ Found: true, NumApprovedThisWindow: 1 });
  });

  test('only the admin port leads to the dashboard', async () => {
    expect((await send(app.url, 'GET', '/')).status).toBe(404);
    expect((await send(app.adminUrl, 'GET', '/')).headers.location).toBe('ui');
  });

  test('both ports answer health checks', async () => {
    for (const url of [app.url, app.adminUrl]) {
      expect(await statuses(url, ['/healthz', '/readyz'])).toEqual({
        '/healthz': 200,
        '/readyz': 200,
      });
    }
  });

  test('both ports and their connections are closed when the replica stops', async () => {
    const connections = await Promise.all(
      [app.url, app.adminUrl].map((url) => openConnection(url)),
    );
    for (const connection of connections) {
      connection.write(requestText('GET', '/healthz'));
      await connection.receives(/OK$/);
    }
    await app.stop(0);

    for (const { closed } of connections) await closed;
    for (const url of [app.url, app.adminUrl]) {
      await expect(send(url, 'GET', '/healthz')).rejects.toThrow('ECONNREFUSED');
    }
  });
});

describe('DEBUG_ENDPOINTS=false', () => {
  const DEBUG_PATHS = [
    ...['/', '/debug', '/debug/key', '/debug/%zz', '/debug/key/more'],
    ...['/ui', '/ui/main.js', '/ui/data', '/ui/data/key?key=a', '/ui/try/check?key=a'],
  ];

  test.each([
    ['without an admin port', {}],
    ['with an admin port', { ADMIN_PORT: '0' }],
  ])('removes the debug endpoints, and nothing else (%s)', async (_how, ports) => {
    const app = await start({ ...ports, DEBUG_ENDPOINTS: 'false' });
    const urls = 'ADMIN_PORT' in ports ? [app.url, app.adminUrl] : [app.url];
    for (const url of urls) {
      for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
        for (const path of DEBUG_PATHS) {
          const answer = await send(url, method, path);
          expect([method, path, answer.status]).toEqual([method, path, 404]);
        }
      }
    }

    expect((await send(urls.at(-1)!, 'GET', '/metrics')).status).toBe(200);
    await approve(app.url, uniqueKey());
  });
});
