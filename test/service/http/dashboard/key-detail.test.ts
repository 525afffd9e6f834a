import type { InstanceDetail } from '../../../../src/limiter/limiter.js';
import type { TestApp } from '../../../support/app.js';
import { keyPath } from '../../../support/dashboard/dashboard-page.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import { begin, ratePath, send } from '../../../support/http-client.js';
import { bearer } from '../../../support/tokens.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { useApp, useApps } from '../../../support/use-apps.js';

const start = useApps();

describe('one key in detail', () => {
  let app: TestApp;
  beforeEach(async () => {
    const tenants = {
      key_pattern: 'tenant.*',
      key_pattern_is_regex: true,
      name: 'tenants',
      max_requests_per_window: 2,
      requests_can_mod_queue: false,
      requests_can_hold: false,
      requests_can_set_window: false,
    };
    const tenant = { key_pattern: 'tenant-7', window_millis: 3_600_000, max_requests_ceiling: 50 };
    app = await start({ WINDOW_MILLIS: '7200000' }, { rules: [tenants, tenant] });
  });

  const detail = async (key: string): Promise<unknown> =>
    (await send(app.url, 'GET', keyPath('/ui/data/key', key))).json();

  test('has its window, its limits and their sources', async () => {
    await send(app.url, 'POST', ratePath('tenant-7'));
    await send(app.url, 'POST', `${ratePath('tenant-7')}?maxRequests=3`);

    expect(await detail('tenant-7')).toMatchObject({
      key: 'tenant-7',
      found: true,
      limits: [{ windowMillis: 3_600_000, maximum: 3, used: 2 }],
      maxRequestsInQueue: 400,
      explained: {
        digest: expect.stringMatching(/^[0-9a-f]{12}$/) as unknown,
        rules: [
          {
            number: 1,
            name: 'tenants',
            pattern: 'tenant.*',
            isRegex: true,
            effects: {
              max_requests_per_window: 2,
              requests_can_mod_queue: false,
              requests_can_hold: false,
              requests_can_set_window: false,
            },
          },
          { number: 2, pattern: 'tenant-7', isRegex: false },
        ],
        limits: [{ windowMillis: 3_600_000, maximum: 2 }],
        maxRequestsInQueue: 400,
        sources: {
          windowMillis: { by: 'rule', number: 2 },
          maxRequests: { by: 'request' },
          maxRequestsInQueue: { by: 'settings' },
          algorithm: { by: 'settings' },
        },
        requestsCanSet: { maxRequests: 50 },
        isShadow: false,
      },
    });
    const { limits } = (await detail('tenant-7')) as Pick<InstanceDetail, 'limits'>;
    const [{ millisToWindowEnd }] = limits;
    expect(millisToWindowEnd).toBeGreaterThan(3_500_000);
    expect(millisToWindowEnd).toBeLessThanOrEqual(3_600_000);
  });

  test('has the waiters of each replica, without ids that could release their approvals', async () => {
    await send(app.url, 'POST', `${ratePath('job')}?maxRequests=1`);
    const waiting = begin(app.url, 'POST', `${ratePath('job')}?canWait=true`);
    await untilWaiting(app.url, 'job', 1);
    const body = (await detail('job')) as Record<string, unknown>;
    waiting.disconnect();

    expect(body.queue).toEqual([
      { replica: body.replica, waitedMillis: expect.any(Number) as unknown },
    ]);
    expect(body.replicas).toMatchObject([{ replica: body.replica, places: 1 }]);
  });

  test.each([
    ['', 'key must be given once'],
    ['?key=a&key=b', 'key must be given once'],
    ['?key=', 'key must be 1 to 512 bytes of UTF-8, not 0'],
  ])('is rejected for %j', async (query, error) => {
    const answer = await send(app.url, 'GET', `/ui/data/key${query}`);
    expect([answer.status, answer.json()]).toEqual([400, { error }]);
  });

  test('is rejected for a key that is too long', async () => {
    const key = 'x'.repeat(513);
    const answer = await send(app.url, 'GET', keyPath('/ui/data/key', key));
    const error = 'key must be 1 to 512 bytes of UTF-8, not 513';
    expect([answer.status, answer.json()]).toEqual([400, { error, key }]);
  });
});

test('a key that the caller may not see is not shown', async () => {
  const TEAM = {
    name: 'team',
    token: 'token-for-keys-of-the-team',
    scopes: ['debug'],
    key_patterns: ['team:.*'],
  };
  const app = await start({}, { tokens: [TEAM] });
  const ask = (key: string) => send(app.url, 'GET', keyPath('/ui/data/key', key), bearer(TEAM));
  const [own, other] = await Promise.all([ask('team:a'), ask('other')]);

  expect(own.status).toBe(200);
  expect([other.status, other.json()]).toEqual([
    403,
    { error: 'the token does not allow this key', key: 'other' },
  ]);
});

describe('a check and a release by hand', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await start({ ADMIN_PORT: '0', WINDOW_MILLIS: '3600000' });
  });

  test.each([
    ['/ui/try/check', 'key must be given once'],
    ['/ui/try/release?key=a', 'request_id must be given once'],
    ['/ui/try/release?request_id=a', 'key must be given once'],
  ])('POST %s is rejected', async (path, error) => {
    const answer = await send(app.adminUrl, 'POST', path);
    expect(answer.status).toBe(400);
    expect(answer.json()).toMatchObject({ error });
  });

  test.each(['/ui/try/check', '/ui/try/release', '/ui/pause'])(
    'GET %s is not allowed',
    async (path) => {
      const answer = await send(app.adminUrl, 'GET', keyPath(path, 'job'));
      expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
      expect(await debugState(app.adminUrl, 'job')).toEqual({ Key: 'job', Found: false });
    },
  );
});

describe('pausing a key', () => {
  const caller = (name: string, ...scopes: string[]) => ({
    name,
    token: `token-of-the-caller-${name}`,
    scopes: ['debug', ...scopes],
  });
  const VIEWER = caller('viewer');
  const CHECKER = caller('checker', 'check');
  const OPERATOR = caller('operator', 'check', 'configure');

  const app = useApp(() => ({ ADMIN_PORT: '0', WINDOW_MILLIS: '3600000' }), {
    rules: [{ key_pattern: 'open-.*', key_pattern_is_regex: true, requests_can_pause: true }],
    tokens: [VIEWER, CHECKER, OPERATOR],
  });

  type Caller = typeof VIEWER;

  const detail = async (key: string, who: Caller): Promise<unknown> =>
    (await send(app.adminUrl, 'GET', keyPath('/ui/data/key', key), bearer(who))).json();

  const pause = (key: string, pauseMillis: string, who = OPERATOR) =>
    send(app.adminUrl, 'POST', keyPath('/ui/pause', key, { pauseMillis }), bearer(who));

  test('a pause denies checks until it is ended, also on the admin port', async () => {
    const key = uniqueKey();
    const statusOfCheck = async (): Promise<number> =>
      (await send(app.url, 'POST', ratePath(key), bearer(OPERATOR))).status;
    const paused = await pause(key, '60000');
    expect([paused.status, paused.json()]).toEqual([200, { key, pauseMillis: 60_000 }]);
    expect(await statusOfCheck()).toBe(429);
    expect((await pause(key, '0')).status).toBe(200);
    expect(await statusOfCheck()).toBe(200);
  });

  test('the page knows what the scopes and the rules of a key allow', async () => {
    const [key, open] = [uniqueKey(), `open-${uniqueKey()}`];
    const may = (check: boolean, pauseKey: boolean, endHolds: boolean) => ({
      may: { check, pause: pauseKey, endHolds },
    });
    expect(await detail(key, VIEWER)).toMatchObject(may(false, false, false));
    expect(await detail(key, CHECKER)).toMatchObject(may(true, false, false));
    expect(await detail(open, CHECKER)).toMatchObject(may(true, true, false));
    expect(await detail(key, OPERATOR)).toMatchObject(may(true, true, true));
    const statuses = [
      (await pause(key, '1000', VIEWER)).status,
      (await pause(key, '1000', CHECKER)).status,
      (await pause(open, '1000', CHECKER)).status,
    ];
    expect(statuses).toEqual([403, 403, 200]);
  });

  test.each([
    [{}, 'pauseMillis must be a whole number from 0 to 86400000'],
    [{ pauseMillis: '-1' }, 'pauseMillis must be a whole number from 0 to 86400000'],
  ])('a pause with %j is rejected', async (query, error) => {
    const path = keyPath('/ui/pause', uniqueKey(), query);
    const answer = await send(app.adminUrl, 'POST', path, bearer(OPERATOR));
    expect(answer.status).toBe(400);
    expect(answer.json()).toMatchObject({ error });
  });
});
