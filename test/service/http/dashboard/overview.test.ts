import { readdirSync } from 'node:fs';

import { PATIENT_STORE } from '../../../support/both-limiters.js';
import { checkMany } from '../../../support/bulk-client.js';
import { decisionsOf, keysOf, overviewOf } from '../../../support/dashboard/dashboard-page.js';
import { untilWaiting } from '../../../support/debug-state.js';
import { startFaultProxy } from '../../../support/fault-proxy.js';
import { begin, checkTimes, ratePath, send } from '../../../support/http-client.js';
import { bearer } from '../../../support/tokens.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { until } from '../../../support/until.js';
import { type OwnApp, useApp, useApps } from '../../../support/use-apps.js';
import { useRedis } from '../../../support/use-redis.js';

const redis = useRedis();
const start = useApps();

describe('the overview', () => {
  let app: OwnApp;
  beforeEach(async () => {
    app = await start({
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '4',
      MAX_REQUESTS_IN_QUEUE: '9',
    });
  });

  test('of no keys names the replica, the store and the rules', async () => {
    const { total, replicas, ...overview } = await overviewOf(app.url);
    // From the end of the first step on, both also have rates.
    expect(total).toMatchObject({ waiting: 0 });
    expect(replicas).toMatchObject([
      {
        replica: overview.replica,
        uptimeMillis: expect.any(Number) as unknown,
        decisions: { approved: 0, denied: 0, shadowed: 0, withdrawn: 0, failed: 0 },
        waiting: 0,
        reportedMillis: 0,
        rules: overview.rules.digest,
      },
    ]);
    expect(overview).toStrictEqual({
      replica: expect.stringMatching(/-[0-9a-f]{8}$/) as unknown,
      store: 'memory',
      storeState: 'up',
      problems: [],
      rules: {
        count: 0,
        digest: expect.stringMatching(/^[0-9a-f]{12}$/) as unknown,
        isStale: false,
      },
      survey: {
        keys: 0,
        kept: 0,
        replicas: [],
        isComplete: true,
        ageMillis: expect.any(Number) as unknown,
      },
      isComplete: true,
      asOfMillis: expect.any(Number) as unknown,
      nowMillis: expect.any(Number) as unknown,
      counts: { paused: 0, denied: 0, queue_full: 0, waiting: 0, held: 0, was_denied: 0, used: 0 },
      matching: 0,
      keys: [],
      intervalMillis: expect.any(Number) as unknown,
    });
  });

  test('sorts by what needs a person, and finds keys by their states', async () => {
    await checkTimes(app.url, 'low', 1);
    await checkTimes(app.url, 'used', 3);
    await checkTimes(app.url, 'held', 1, '?holdMillis=60000&holder=ci');
    await checkTimes(app.url, 'queue', 4);
    begin(app.url, 'POST', `${ratePath('queue')}?canWait=true`);
    await untilWaiting(app.url, 'queue', 1);
    await checkTimes(app.url, 'denied', 6);
    await send(app.url, 'PUT', `${ratePath('paused')}?pauseMillis=60000`);
    const all = await until(async () => {
      const found = await overviewOf(app.url);
      // When all approvals are in the rates.
      return keysOf(found.keys).slice(-2).join() === 'used,low' && found;
    });

    const statesByKey = all.keys.map(({ key, states }) => [key, ...states]);
    expect(statesByKey).toEqual([
      ['paused', 'paused'],
      ['denied', 'denied', 'used'],
      ['queue', 'waiting', 'used'],
      ['held', 'held', 'used'],
      ['used', 'used'],
      ['low', 'used'],
    ]);
    expect(all.counts).toEqual({
      paused: 1,
      denied: 1,
      queue_full: 0,
      waiting: 1,
      held: 1,
      was_denied: 0,
      used: 5,
    });
    const { rates, ...low } = all.keys[5]!;
    expect(low).toStrictEqual({
      key: 'low',
      limits: [
        {
          windowMillis: 3_600_000,
          maximum: 4,
          algorithm: { name: 'fixed_window' },
          counts: 'hits',
          keepsReleased: false,
          ...{ used: 1, fill: 0.25, hasBoundary: true },
          millisToWindowEnd: expect.any(Number) as unknown,
        },
      ],
      maxRequestsInQueue: 9,
      ...{ held: 0, pausedMillis: 0, denied: 0, waiting: 0 },
      states: ['used'],
      isCurrent: true,
    });
    expect(rates?.denied ?? 0).toBe(0);
    expect(all.survey).toMatchObject({ keys: 6, kept: 6, isComplete: true });
    expect(all.keys[3]!.holdings).toMatchObject({ shown: [{ holder: 'ci', hits: 1 }], count: 1 });
    const cut = await overviewOf(app.url, { limit: '1' });
    expect([keysOf(cut.keys), cut.matching]).toEqual([['paused'], 6]);
    const held = await overviewOf(app.url, { state: 'held' });
    expect([keysOf(held.keys), held.matching, held.survey.keys]).toEqual([['held'], 1, 6]);
    expect(held.counts).toEqual(all.counts);
    const both = await overviewOf(app.url, { state: 'used', search: 'ED' });
    expect([keysOf(both.keys), both.matching]).toEqual([['denied', 'used'], 2]);
    expect(both.counts).toMatchObject({ paused: 1, denied: 1, used: 2 });
  });

  test('the head has what the rows add up to, at each moment', async () => {
    const held = ['10', '20', '30', '40'].map((key) => checkTimes(app.url, key, Number(key) / 10));
    await Promise.all(held);
    await checkTimes(app.url, 'queue', 6);
    begin(app.url, 'POST', `${ratePath('queue')}?canWait=true`);
    await untilWaiting(app.url, 'queue', 1);
    const seen = await until(async () => {
      const overview = await overviewOf(app.url);
      const sum = (of: 'approved' | 'denied') =>
        overview.keys.reduce((all, { rates }) => all + (rates?.[of] ?? 0), 0);
      const { approved = 0, denied = 0, waiting } = overview.total;
      expect([sum('approved'), sum('denied')]).toEqual([
        expect.closeTo(approved, 9),
        expect.closeTo(denied, 9),
      ]);
      expect(waiting).toBe(1);
      // When all checks are in the rates: 14 were approved, and 2 denied.
      return denied > 0 && Math.abs(approved / denied - 7) < 1e-9 && overview;
    });
    expect(seen.counts).toMatchObject({ waiting: 1, denied: 1 });
  });

  test('the busiest keys come first if that is asked for, also those that nobody has surveyed', async () => {
    for (const key of ['a', 'b', 'full']) await checkTimes(app.url, key, 1);
    await overviewOf(app.url);
    await checkTimes(app.url, 'full', 5);
    await checkTimes(app.url, 'mutex', 1, '?holdMillis=60000&holder=ci');
    for (let i = 0; i < 3; i += 1) {
      const { request_id: id } = (await send(app.url, 'POST', ratePath('busy'))).json() as {
        request_id: string;
      };
      await send(app.url, 'DELETE', `${ratePath('busy')}/${id}`);
      await send(app.url, 'POST', ratePath('busy'));
    }
    const keys = await until(async () => {
      const { keys } = await overviewOf(app.url, { order: 'rate', limit: '2' });
      return keysOf(keys).join() === 'busy,full' && keys;
    });
    expect(keys[0]!.rates!.approved).toBeGreaterThan(keys[1]!.rates!.approved);
    expect(keysOf((await overviewOf(app.url, { limit: '1' })).keys)).toEqual(['full']);
  });

  test('the limit of a mutex is marked, also while nobody holds it', async () => {
    const path = `${ratePath('mutex')}?maxRequests=1&holdMillis=60000&holder=ci`;
    const { request_id: id } = (await send(app.url, 'POST', path)).json() as { request_id: string };
    await checkTimes(app.url, 'plain', 1);
    const marks = async (key: string) =>
      (await overviewOf(app.url)).keys.find((row) => row.key === key)!.limits;
    expect(await marks('mutex')).toMatchObject([{ isHeldOnly: true, used: 1, maximum: 1 }]);
    expect((await marks('plain'))[0]).not.toHaveProperty('isHeldOnly');
    // A key may be listed before the step of its first approval has ended.
    await until(async () => (await overviewOf(app.url)).keys[0]?.rates?.isHeldOnly === true);
    await send(app.url, 'DELETE', `${ratePath('mutex')}/${id}`);
    expect(await marks('mutex')).toMatchObject([{ isHeldOnly: true, used: 0 }]);
  });

  test('a key that was paused since the survey is paused in the row, and sorted so at the next look', async () => {
    await checkTimes(app.url, 'other', 2);
    await checkTimes(app.url, 'key', 1);
    await overviewOf(app.url);
    await send(app.url, 'PUT', `${ratePath('key')}?pauseMillis=60000`);
    expect((await overviewOf(app.url)).keys[0]).toMatchObject({
      key: 'key',
      states: ['paused', 'used'],
    });
    expect((await overviewOf(app.url, { state: 'paused' })).matching).toBe(1);
  });

  test('lists a key that is newer than the survey as soon as it is denied', async () => {
    await checkTimes(app.url, 'before', 1);
    await overviewOf(app.url);
    await checkTimes(app.url, 'since', 5);
    const { keys, survey } = await overviewOf(app.url);

    expect(survey).toMatchObject({ keys: 2, kept: 2 });
    expect(keysOf(keys)).toEqual(['since', 'before']);
    expect(keys[0]).toMatchObject({ limits: [{ used: 4 }], denied: 1 });
  });

  test('finds keys by a part of them, in any case, and a new key by its full name', async () => {
    for (const key of ['tenant/7', 'Tenant/8', 'other', '__proto__', 'constructor', 'ключ']) {
      await checkTimes(app.url, key, 1);
    }
    const found = async (search: string): Promise<string[]> =>
      keysOf((await overviewOf(app.url, { search })).keys).sort();

    expect(await found('tenant/')).toEqual(['Tenant/8', 'tenant/7']);
    expect(await found('__proto__')).toEqual(['__proto__']);
    expect(await found('constructor')).toEqual(['constructor']);
    expect(await found('КЛЮЧ')).toEqual(['ключ']);
    expect(await found('nobody')).toEqual([]);
    await checkTimes(app.url, 'brand-new', 1);
    expect(await found('brand-new')).toEqual(['brand-new']);
  });

  test.each([
    [
      'state=odd',
      'state must be one of paused, denied, queue_full, waiting, held, was_denied, used',
    ],
    ['order=odd', 'order must be one of need, rate'],
    ['limit=0', 'limit must be a whole number from 1 to 200'],
    ['limit=201', 'limit must be a whole number from 1 to 200'],
    ['limit=5&limit=6', 'limit must be a whole number from 1 to 200'],
    [`search=${'x'.repeat(513)}`, 'search must be no longer than a key'],
  ])('is rejected for %s', async (query, error) => {
    const answer = await send(app.url, 'GET', `/ui/data?${query}`);
    expect([answer.status, answer.json()]).toEqual([400, { error }]);
  });
});

describe('with tokens', () => {
  const TEAM = {
    name: 'team',
    token: 'token-for-keys-of-the-team',
    scopes: ['check', 'debug'],
    key_patterns: ['team:.*'],
  };
  const OWNER = { name: 'owner', token: 'token-for-all-keys', scopes: ['check', 'debug'] };
  const CHECKER = { name: 'checker', token: 'token-for-checks-only', scopes: ['check'] };
  let app: OwnApp;
  beforeEach(async () => {
    const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
    app = await start(hour, { tokens: [TEAM, OWNER, CHECKER] });
  });

  test('a caller does not learn how many keys there are besides its own', async () => {
    const others = Array.from({ length: 8000 }, (_, i) => ({ key: `other:${i}` }));
    for (let from = 0; from < others.length; from += 1000) {
      await checkMany(app.url, others.slice(from, from + 1000), { ...bearer(OWNER) });
    }
    await send(app.url, 'POST', ratePath('team:a'), bearer(OWNER));
    await until(async () => (await overviewOf(app.url, {}, bearer(OWNER))).survey.isComplete);
    const [all, own] = [
      await overviewOf(app.url, {}, bearer(OWNER)),
      await overviewOf(app.url, {}, bearer(TEAM)),
    ];

    expect([all.survey.keys, all.survey.kept]).toEqual([8001, 8001]);
    expect(all.intervalMillis).toBeGreaterThan(2400);
    expect([own.survey.keys, own.survey.kept, own.intervalMillis]).toEqual([1, 1, 2000]);
  });

  test('no answer has a request id, a token, or the name of a key of others', async () => {
    const ids: string[] = [];
    for (const key of ['team:a', 'other:b', 'other:c']) {
      const answer = await send(app.url, 'POST', ratePath(key), bearer(OWNER));
      ids.push((answer.json() as { request_id: string }).request_id);
      await send(app.url, 'POST', ratePath(key), bearer(OWNER));
    }
    const paths = ['/debug', '/debug/team:a', '/ui/data', '/ui/data/key?key=team:a', '/metrics'];
    const answers = await Promise.all(
      paths.map((path) => send(app.url, 'GET', path, bearer(TEAM))),
    );
    const text = answers.map((answer) => answer.text).join();

    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200));
    expect(text).toContain('team:a');
    for (const secret of [...ids, TEAM.token, OWNER.token, 'other:']) {
      expect(text).not.toContain(secret);
    }
  });

  test('a caller sees only its own keys, also among the denied ones', async () => {
    for (const key of ['team:a', 'other:b']) {
      for (let i = 0; i < 3; i += 1) await send(app.url, 'POST', ratePath(key), bearer(OWNER));
    }
    const { keys, counts, matching } = await overviewOf(app.url, {}, bearer(TEAM));
    expect([keysOf(keys), counts.denied, matching]).toEqual([['team:a'], 1, 1]);
    const search = await overviewOf(app.url, { search: 'other:b' }, bearer(TEAM));
    expect(search.keys).toEqual([]);
    const all = await overviewOf(app.url, {}, bearer(OWNER));
    expect(keysOf(all.keys)).toHaveLength(2);
    expect(all.survey).toMatchObject({ keys: 2, kept: 2 });
    expect(all.keys[0]?.recentDenials).toMatchObject({ caller: 'owner', count: 2 });
  });
});

test('a denial by a shadow rule is marked', async () => {
  const rule = { key_pattern: 'tried', max_requests_per_window: 1, shadow: true };
  const app = await start({ WINDOW_MILLIS: '3600000' }, { rules: [rule] });
  await checkTimes(app.url, 'tried', 2);
  const overview = await overviewOf(app.url);
  const { keys, rules } = overview;

  expect(keys).toMatchObject([{ key: 'tried', recentDenials: { isShadow: true, count: 1 } }]);
  expect(rules.count).toBe(1);
  expect(decisionsOf(overview)).toMatchObject({ shadowed: 1, denied: 0 });
});

test('replicas that have waiters in the longest queues are named', async () => {
  const settings = {
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: `${uniqueKey()}:`,
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
  };
  const [first, second] = await Promise.all([start(settings), start(settings)]);
  await checkTimes(first.url, 'key', 1);
  begin(second.url, 'POST', `${ratePath('key')}?canWait=true`);
  await untilWaiting(first.url, 'key', 1);
  const { replica, store, survey } = await overviewOf(first.url);

  expect(store).toBe('redis standalone');
  expect(survey.replicas).toMatchObject([{ places: 1 }]);
  expect(survey.replicas[0]?.replica).not.toBe(replica);
});

test('the next poll after an outage of the store says that all is known', async () => {
  const proxy = await startFaultProxy(Number(new URL(redis.url).port));
  const { url } = await start({
    WINDOW_MILLIS: '3600000',
    STORE_TIMEOUT_MILLIS: '1500',
    REDIS_URL: Object.assign(new URL(redis.url), { port: String(proxy.port) }).href,
    KEY_PREFIX: `${uniqueKey()}:`,
  });
  await checkTimes(url, 'key', 1);
  expect(await overviewOf(url)).toMatchObject({ isComplete: true, matching: 1 });

  proxy.stop();
  await until(async () => (await overviewOf(url)).storeState === 'down');
  await until(async () => (await overviewOf(url)).survey.failure === 'unavailable');
  expect(await overviewOf(url)).toMatchObject({
    isComplete: false,
    matching: 1,
    storeState: 'down',
  });

  await proxy.accept();
  await until(async () => (await send(url, 'POST', ratePath('key'))).status === 200);
  const after = { isComplete: true, matching: 1, storeState: 'up' };
  expect(await overviewOf(url)).toMatchObject(after);
  proxy.stop();
});

describe('files of the page', () => {
  const own = readdirSync('ui').map((file) => (file === 'index.html' ? '/ui' : `/ui/${file}`));
  const library = ['/ui/uplot.js', '/ui/uplot.css'];
  const paths = [...own, ...library];
  const TYPES: Readonly<Record<string, RegExp>> = {
    html: /^text\/html; charset=utf-8$/,
    js: /^text\/javascript; charset=utf-8$/,
    css: /^text\/css; charset=utf-8$/,
    svg: /^image\/svg\+xml$/,
  };

  const READER = { name: 'reader', token: 'token-of-the-reader', scopes: ['debug'] };
  const app = useApp(undefined, { tokens: [READER] });

  test.each(paths)('%s needs no token, and may load nothing from elsewhere', async (path) => {
    const { status, headers } = await send(app.url, 'GET', path);

    expect(status).toBe(200);
    expect(headers['content-type']).toMatch(TYPES[path.split('.')[1] ?? 'html']!);
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy.join()).not.toMatch(/unsafe|\*|https?:|data:/);
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    });
  });

  test('a browser that has the current file gets a 304', async () => {
    const first = await send(app.url, 'GET', '/ui');
    const again = await send(app.url, 'GET', '/ui', { 'If-None-Match': first.headers.etag });
    const changed = await send(app.url, 'GET', '/ui', { 'If-None-Match': '"another"' });

    expect([again.status, again.text]).toEqual([304, '']);
    expect([changed.status, changed.text]).toEqual([200, first.text]);
  });

  test.each([
    ['the files of the page', own, 84_000],
    ['the files of uPlot, which draws its charts,', library, 54_000],
  ])('%s together are under the bound', async (_title, files, bound) => {
    const texts = await Promise.all(
      files.map(async (path) => (await send(app.url, 'GET', path)).text),
    );
    expect(Buffer.byteLength(texts.join(''))).toBeLessThan(bound);
  });

  test.each([
    '/ui/',
    '/ui/index.html',
    '/ui/../package.json',
    '/ui/%2e%2e/package.json',
    '/ui/none',
  ])('%s is not found', async (path) => {
    expect((await send(app.url, 'GET', path)).status).toBe(404);
  });
});
