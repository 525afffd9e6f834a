import { randomUUID } from 'node:crypto';

import type { Limiter, Peek } from '../../../src/limiter/limiter.js';
import { checkMany } from '../../support/bulk-client.js';
import { overviewOf } from '../../support/dashboard/dashboard-page.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import { quotaOf } from '../../support/quota.js';
import { bearer } from '../../support/tokens.js';
import { useApp, useApps } from '../../support/use-apps.js';

const start = useApps();
const HOUR = 3_600_000;
const SETTINGS = { WINDOW_MILLIS: `${HOUR}`, MAX_REQUESTS: '1', LOG_4XX: 'true' };

describe('a peek', () => {
  const app = useApp(() => SETTINGS);
  const key = useHttpKey(() => app);
  const get = (query: string) => send(app.url, 'GET', `/rate/${key.name}?${query}`);

  test('says that a check would be approved, with what is left, and creates no key', async () => {
    for (const answer of [await get('peek=true'), await key.check('?peek=1&canWait=true')]) {
      expect(bodyOf(answer)).toEqual([200, { key: key.name, waitMillis: 0 }]);
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-store',
        'ratelimit-policy': '"default";q=1;w=3600',
        ratelimit: '"default";r=1;t=3600',
      });
      expect(answer.headers).not.toHaveProperty(['retry-after']);
    }
    expect(await key.state()).toEqual({ Key: key.name, Found: false });
  });

  test('says when a check would have its turn, without waiting for that', async () => {
    await key.approve();
    for (const answer of [
      await get('peek=true'),
      await key.check('?peek=TRUE&canWait=true&maxWaitMillis=5'),
      await get('peek=true&maxWaitMillis=5'),
    ]) {
      const { waitMillis, ...body } = answer.json() as { waitMillis: number };
      expect([answer.status, body]).toEqual([429, { error: 'rate limit exceeded', key: key.name }]);
      expect(Number.isInteger(waitMillis)).toBe(true);
      expect(waitMillis).toBeGreaterThan(HOUR - 60_000);
      expect(waitMillis).toBeLessThanOrEqual(HOUR);
      expect(answer.headers).toMatchObject({
        'retry-after': `${Math.ceil(waitMillis / 1000)}`,
        ratelimit: expect.stringMatching(/^"default";r=0;t=3\d{3}$/) as string,
      });
    }
    expect(await key.state()).toMatchObject({ NumDeniedThisWindow: 0, NumWaiting: 0 });
  });

  test.each([
    [`peek=true&requestId=${randomUUID()}`, 'requestId must be left out with peek=true'],
    ['peek=true&maxRequests=5', 'maxRequests must be left out with peek=true'],
    ['peek=true&maxRequestsInQueue=5', 'maxRequestsInQueue must be left out with peek=true'],
    ['peek=true&windowMillis=5', 'windowMillis must be left out with peek=true'],
    ['peek=yes', 'peek must be true, false, 1 or 0'],
    ['peek=true&hits=2', 'hits must be at most 1, the maximum of the key, not 2'],
  ])('with %s is a 400', async (query, error) => {
    expect(bodyOf(await get(query))).toEqual([400, { error, key: key.name }]);
    expect(await key.state()).toMatchObject({ Found: false });
  });

  test('that is false is a check', async () => {
    expect((await get('peek=false&maxRequests=3')).json()).toHaveProperty('request_id');
    expect((await key.check('?peek=0')).json()).toHaveProperty('request_id');
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 2 });
  });

  test('is no decision for metrics and the dashboard, and is logged as a denial', async () => {
    await key.approve();
    const before = (await scrape(app.url)).valuesOf('ratelimit_decisions_total');
    expect((await get('peek=true')).status).toBe(429);
    expect((await scrape(app.url)).valuesOf('ratelimit_decisions_total')).toEqual(before);
    expect(await overviewOf(app.url)).toMatchObject({ counts: { denied: 0 } });
    const line = app.log.find(({ req }) =>
      (req as { url?: string } | undefined)?.url?.startsWith(`/rate/${key.name}?peek`),
    );
    expect(line).toMatchObject({
      key: key.name,
      errorCode: 'RATE_LIMIT_EXCEEDED',
      req: { url: `/rate/${key.name}?peek=true` },
    });
  });

  test('is no field of an element of a bulk request', async () => {
    const results = await checkMany(app.url, [{ key: key.name, peek: true }]);
    expect(results).toMatchObject([{ status: 400, error: 'peek must be left out' }]);
  });
});

test('a peek needs what a check needs: its key, a rule, and holds that are allowed', async () => {
  const tokens = [
    { name: 'one', token: 'token-of-one-worker', scopes: ['check'], key_patterns: ['mine'] },
  ];
  const rules = [{ key_pattern: 'mine', requests_can_hold: false }];
  const app = await start({}, { tokens });
  const open = await start({ UNKNOWN_KEYS: 'deny' }, { rules });
  const bodiesOf = async (path: string) => [
    bodyOf(await send(app.url, 'GET', `/rate/${path}`, bearer(tokens[0]!))),
    bodyOf(await send(open.url, 'GET', `/rate/${path}`)),
  ];
  expect(await bodiesOf('other?peek=true')).toEqual([
    [403, { error: 'the token does not allow this key', key: 'other' }],
    [403, { error: 'no rule matches the key', key: 'other' }],
  ]);
  expect(await bodiesOf('mine?peek=true&holdMillis=1000')).toMatchObject([
    [200, {}],
    [403, { error: 'holding approvals is disabled for this key' }],
  ]);
});

test('a shadow rule lets a peek pass that it would deny, and says so', async () => {
  const app = await start(SETTINGS, { rules: [{ key_pattern: 'tried', shadow: true }] });
  await send(app.url, 'POST', '/rate/tried');
  for (const query of ['', '&hits=2']) {
    const answer = await send(app.url, 'GET', `/rate/tried?peek=true${query}`);
    expect(bodyOf(answer)).toEqual([200, { key: 'tried', waitMillis: 0 }]);
    expect(answer.headers['x-sluice-shadow']).toBe('denied');
  }
});

test.each<[status: number, policy: 'allow' | 'local', peek: Peek]>([
  [200, 'allow', { outcome: 'approved', outagePolicy: 'allow' }],
  [
    429,
    'local',
    {
      outcome: 'denied',
      reason: 'limit_reached',
      quota: quotaOf(1),
      turnMillis: 0.2,
      outagePolicy: 'local',
    },
  ],
])('a %d of a peek under the policy %s says so', async (status, policy, peek) => {
  const limiter = { waiting: () => 0, ask: () => Promise.resolve(peek) } as Partial<Limiter>;
  const app = await serve(httpAppOver(limiter as Limiter));
  const answer = await send(app.url, 'GET', '/rate/key?peek=true');
  await app.close();
  expect([answer.status, answer.headers['x-sluice-outage-policy']]).toEqual([status, policy]);
  expect(answer.json()).toMatchObject({ waitMillis: status === 429 ? 1 : 0 });
});

describe('the status of a request', () => {
  const app = useApp(() => SETTINGS);
  const key = useHttpKey(() => app);
  const get = (requestId: string, query = '') =>
    send(app.url, 'GET', `${ratePath(key.name)}/${requestId}${query}`);

  test('that is approved says so, and is not cached', async () => {
    const answer = await get(await key.approve());
    expect(bodyOf(answer)).toEqual([200, { status: 'approved' }]);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' });
    expect(answer.headers).not.toHaveProperty(['ratelimit']);
  });

  test('takes no parameters', async () => {
    const error = 'peek must be left out of the URL';
    expect(bodyOf(await get(randomUUID(), '?peek=true'))).toEqual([400, { error, key: key.name }]);
  });

  test('is no decision for metrics, and its id is not logged', async () => {
    const before = (await scrape(app.url)).valuesOf('ratelimit_decisions_total');
    const id = randomUUID();
    await get(id);
    expect((await scrape(app.url)).valuesOf('ratelimit_decisions_total')).toEqual(before);
    const line = app.log.find(({ errorCode, key: of }) => {
      return errorCode === 'REQUEST_NOT_FOUND' && of === key.name;
    });
    expect(line).toMatchObject({ req: { url: `/rate/${key.name}/[Redacted]` } });
    expect(JSON.stringify(app.log)).not.toContain(id);
  });
});

test('a turn is at the next whole millisecond', async () => {
  const limiter = {
    waiting: () => 0,
    ask: () => Promise.resolve({ status: 'waiting', position: 3, waitMillis: 0.2 }),
  } as Partial<Limiter>;
  const app = await serve(httpAppOver(limiter as Limiter));
  const answer = await send(app.url, 'GET', `/rate/key/${randomUUID()}`);
  await app.close();
  expect(bodyOf(answer)).toEqual([200, { status: 'waiting', position: 3, waitMillis: 1 }]);
});
