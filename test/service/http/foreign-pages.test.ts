import { ratePath, send } from '../../support/http-client.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';

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
