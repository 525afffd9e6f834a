import { ratePath, send } from '../../support/http-client.js';
import { openConnection } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';

const start = useApps();
let app: OwnApp;

const LOOPBACK = [
  'localhost',
  'localhost:8080',
  'LocalHost:1',
  '127.0.0.1',
  '127.1.2.3:99',
  '[::1]',
  '[::1]:8080',
];
const ADDRESSES = ['10.1.2.3', '10.1.2.3:8080', '[2001:db8::1]:8080'];
const FOREIGN = [
  'evil.example',
  'evil.example:8080',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'evil.example:localhost',
  '[::1].evil.example',
  'user@localhost',
  'localhost:80:80',
  '[',
  'sluice.example.evil.example',
];

/** The statuses of checks with these `Host` headers. The last is sent twice. */
async function statusesOf(hosts: readonly string[]): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  for (const Host of [...hosts, ...hosts.slice(-1)]) {
    statuses[Host] = (await send(app.url, 'POST', ratePath(uniqueKey()), { Host })).status;
  }
  return statuses;
}

function allWith(status: number, hosts: readonly string[]): Record<string, number> {
  return Object.fromEntries(hosts.map((host) => [host, status]));
}

test('only loopback names are accepted on a loopback address', async () => {
  app = await start();

  expect(await statusesOf(LOOPBACK)).toEqual(allWith(200, LOOPBACK));
  expect(await statusesOf(FOREIGN)).toEqual(allWith(403, FOREIGN));
  expect(await statusesOf(ADDRESSES)).toEqual(allWith(403, ADDRESSES));
  // A rejected name is not cached as allowed.
  expect(await statusesOf(['localhost', 'evil.example', 'localhost'])).toEqual({
    localhost: 200,
    'evil.example': 403,
  });
});

test.each(['/', '/ui', '/docs', '/openapi.json', '/metrics', '/debug', '/healthz', '/unknown'])(
  '%s is also rejected, on both ports',
  async (path) => {
    app = await start({ ADMIN_PORT: '0' });
    const answers = [app.url, app.adminUrl].map((url) =>
      send(url, 'GET', path, { Host: 'evil.example' }),
    );

    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([403, 403]);
  },
);

test('HTTP/1.0, which has no Host header, is served', async () => {
  app = await start();
  const connection = await openConnection(app.url);
  connection.write('GET /healthz HTTP/1.0\r\n\r\n');
  await connection.closed;

  expect(connection.received).toMatch(/^HTTP\/1\.1 200 OK/);
});

test('ALLOWED_HOSTS adds names', async () => {
  app = await start({ ALLOWED_HOSTS: 'Sluice.example, 10.1.2.3,2001:db8::1' });
  const allowed = [...LOOPBACK, ...ADDRESSES, 'sluice.example', 'SLUICE.EXAMPLE:443'];

  expect(await statusesOf(allowed)).toEqual(allWith(200, allowed));
  expect(await statusesOf(FOREIGN)).toEqual(allWith(403, FOREIGN));
});

test('ALLOWED_HOSTS=* accepts any name', async () => {
  app = await start({ ALLOWED_HOSTS: 'a.example,*' });

  expect(await statusesOf(FOREIGN)).toEqual(allWith(200, FOREIGN));
});

describe('on other addresses', () => {
  const HOST = '0.0.0.0';

  test('any name is accepted', async () => {
    app = await start({ HOST });

    expect(await statusesOf(FOREIGN)).toEqual(allWith(200, FOREIGN));
  });

  test('ALLOWED_HOSTS accepts only its names, and addresses, which probes use', async () => {
    app = await start({ HOST, ALLOWED_HOSTS: 'sluice.example' });
    const allowed = [...LOOPBACK, ...ADDRESSES, 'sluice.example:8080'];

    expect(await statusesOf(allowed)).toEqual(allWith(200, allowed));
    expect(await statusesOf(FOREIGN)).toEqual(allWith(403, FOREIGN));
  });
});

describe('with tokens', () => {
  const caller = { name: 'caller', token: 'token-of-the-caller', scopes: ['check'] };

  test('any name is accepted on a loopback address', async () => {
    app = await start({}, { tokens: [caller] });

    expect(await statusesOf(FOREIGN)).toEqual(allWith(401, FOREIGN));
  });

  test('ALLOWED_HOSTS still applies', async () => {
    app = await start({ ALLOWED_HOSTS: 'sluice.example' }, { tokens: [caller] });

    expect(await statusesOf(FOREIGN)).toEqual(allWith(403, FOREIGN));
    expect(await statusesOf(['sluice.example'])).toEqual({ 'sluice.example': 401 });
  });
});
