import { type Answer, ratePath, send } from '../../support/http-client.js';
import { openConnection } from '../../support/raw-http.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { type OwnApp, useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

let app: OwnApp;

type Headers = Readonly<Record<string, string>>;

/** The headers that a browser sends for a page of another origin, and for Sluice's own pages. */
const OWN_HOST = 'localhost:8080';
const FOREIGN: [what: string, headers: Headers][] = [
  ['an image of another site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['a page on another port', { 'Sec-Fetch-Site': 'same-site' }],
  ['a form', { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://evil.example' }],
  ['a redirect', { 'Sec-Fetch-Site': 'cross-site', Origin: 'null' }],
  ['an unknown Sec-Fetch-Site', { 'Sec-Fetch-Site': 'same-origin, cross-site' }],
  ['an older browser', { Origin: 'http://evil.example' }],
  ['an older browser, on another port', { Origin: 'http://localhost:9090' }],
  ['an older browser, in a sandbox', { Origin: 'null' }],
  ['an older browser, with an extension', { Origin: `moz-extension://${OWN_HOST}` }],
];
const OWN: [what: string, headers: Headers][] = [
  ['no browser', {}],
  ['the address bar', { 'Sec-Fetch-Site': 'none' }],
  ['a page of its own', { 'Sec-Fetch-Site': 'same-origin' }],
  [
    'a page of its own, by a proxy of another name',
    { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://sluice.example' },
  ],
  ['an older browser', { Origin: `http://${OWN_HOST}` }],
  ['an older browser, if a proxy ends TLS', { Origin: `https://${OWN_HOST}` }],
];

/** All requests that change something or show a key, with an unknown request id. */
function guarded(key: string): [method: string, path: string][] {
  return [
    ['POST', ratePath(key)],
    ['GET', `${ratePath(key)}?maxRequests=50`],
    ['DELETE', `${ratePath(key)}/id`],
    ['POST', '/rate'],
    ['DELETE', '/rate'],
    ['GET', '/debug'],
    ['HEAD', '/debug'],
    ['GET', `/debug/${key}`],
    ['GET', '/ui/data'],
    ['GET', `/ui/data/key?key=${key}`],
    ['POST', `/ui/try/check?key=${key}`],
    ['POST', `/ui/try/release?key=${key}&request_id=id`],
  ];
}

const OPEN = ['/ui', '/ui/main.js', '/docs', '/openapi.json', '/healthz', '/readyz', '/metrics'];

async function statuses(requests: [string, string][], headers: Headers): Promise<number[]> {
  const answers = requests.map(([method, path]) =>
    send(app.url, method, path, { Host: OWN_HOST, ...headers }),
  );
  return (await Promise.all(answers)).map(({ status }) => status);
}

async function exists(key: string): Promise<boolean> {
  const answer = await send(app.url, 'GET', `/debug/${key}`);
  return (answer.json() as { Found: boolean }).Found;
}

describe('without tokens', () => {
  beforeEach(async () => {
    app = await start();
  });

  test.each(FOREIGN)('%s is rejected, and nothing is counted', async (_what, headers) => {
    const key = uniqueKey();

    const requests = guarded(key);
    expect(await statuses(requests, headers)).toEqual(requests.map(() => 403));
    expect(await exists(key)).toBe(false);
  });

  test.each(OWN)('%s is served', async (_what, headers) => {
    const key = uniqueKey();

    expect(await statuses(guarded(key), headers)).toEqual([
      ...[200, 200, 404, 415, 415, 200, 200, 200, 200, 200, 200, 404],
    ]);
    expect(await exists(key)).toBe(true);
  });

  test.each(FOREIGN)('%s may load the open pages, as from a link', async (_what, headers) => {
    const requests = OPEN.map((path): [string, string] => ['GET', path]);

    expect(await statuses(requests, headers)).toEqual(OPEN.map(() => 200));
  });

  test('no answer allows another page to read it', async () => {
    const headers = { Origin: 'http://evil.example', 'Access-Control-Request-Method': 'POST' };
    const answers = await Promise.all(
      ['OPTIONS', 'POST'].map((method) => send(app.url, method, ratePath(uniqueKey()), headers)),
    );

    expect(answers.map(({ status }) => status)).toEqual([405, 403]);
    for (const answer of answers) {
      expect(Object.keys(answer.headers).join()).not.toContain('access-control');
    }
  });
});

describe('with ALLOWED_ORIGINS', () => {
  const [ALLOWED, OTHER] = ['https://app.example', 'https://app.example:8443'];
  beforeEach(async () => {
    app = await start({ ALLOWED_ORIGINS: `http://ops.example:3000,${ALLOWED}` });
  });

  test.each([
    [200, 'its fetches', { 'Sec-Fetch-Site': 'cross-site', Origin: ALLOWED }],
    [200, 'its images and links', { 'Sec-Fetch-Site': 'same-site', Referer: `${ALLOWED}/page?x` }],
    [200, 'older browsers', { Origin: ALLOWED }],
    [403, 'fetches of another port', { 'Sec-Fetch-Site': 'cross-site', Origin: OTHER }],
    [403, 'fetches of another scheme', { Origin: 'http://app.example' }],
    [403, 'images of another page', { 'Sec-Fetch-Site': 'cross-site', Referer: `${OTHER}/` }],
    [403, 'images of a page without a Referer', { 'Sec-Fetch-Site': 'cross-site' }],
    [
      403,
      'forms of another page on a path that looks alike',
      { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://evil.example', Referer: `${ALLOWED}/` },
    ],
    [403, 'an invalid Referer', { 'Sec-Fetch-Site': 'cross-site', Referer: '::' }],
  ])('%d for %s', async (status, _what, headers) => {
    expect(await statuses([['POST', ratePath(uniqueKey())]], headers)).toEqual([status]);
  });
});

test('with tokens, the token decides, not the origin', async () => {
  const caller = { name: 'page', token: `token-of-a-page-${uniqueKey()}`, scopes: ['check'] };
  app = await start({}, { tokens: [caller] });
  const foreign = { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://evil.example' };
  const check: [string, string][] = [['POST', ratePath(uniqueKey())]];

  expect(await statuses(check, foreign)).toEqual([401]);
  expect(await statuses(check, { ...foreign, ...bearer(caller) })).toEqual([200]);
});

function expectForBrowsers({ headers }: Answer): void {
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  });
}

describe('answers to a browser', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));

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

describe('host names', () => {
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
});
