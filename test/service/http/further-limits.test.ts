import { type AppByRules, useAppsByRules } from '../../support/app-by-rules.js';
import { checkMany } from '../../support/bulk-client.js';
import { type Answer, approve, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import { uniqueKey } from '../../support/unique-key.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';

const serve = useAppsByRules();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const check = ({ url }: AppByRules, query = ''): Promise<Answer> =>
  send(url, 'POST', ratePath('key') + query);
const start = useApps();

/** Two requests a minute, of four an hour. */
const RULE = {
  key_pattern: 'key',
  name: 'tenants',
  max_requests_per_window: 2,
  window_millis: MINUTE,
  limits: [{ name: 'hour', max_requests_per_window: 4, window_millis: HOUR }],
};
const HITS = {
  ...RULE,
  max_requests_per_window: 10,
  limits: [{ name: 'hour', max_hits_per_window: 15, window_millis: HOUR }],
};

/** What a denial says. */
const denialIn = ({ status, headers, json }: Answer): unknown[] => [
  status,
  headers['retry-after'],
  json(),
];

const deniedBy = (limit: string | undefined, retryAfter: string): unknown[] => [
  429,
  retryAfter,
  { error: 'rate limit exceeded', key: 'key', ...(limit === undefined ? {} : { limit }) },
];

/** Takes all of the minute. */
async function fillMinute({ url }: AppByRules): Promise<void> {
  await approve(url, 'key');
  await approve(url, 'key');
}

describe('a denial names the limit that has too little left, and the end of its window', () => {
  test("by the rule's name, if it is the key's own maximum", async () => {
    const app = await serve([RULE]);
    await fillMinute(app);
    await app.clock.advance(15_000);
    expect(denialIn(await check(app))).toEqual(deniedBy('tenants', '45'));
  });

  test('in each element of a bulk request', async () => {
    const app = await serve([HITS, { ...RULE, key_pattern: 'plain', limits: [] }]);
    const [, , third] = await checkMany(app.url, [
      { key: 'key', hits: 8 },
      { key: 'key', hits: 2 },
      { key: 'key', hits: 1 },
    ]);
    expect(third).toEqual({
      status: 429,
      error: 'rate limit exceeded',
      retryAfter: 60,
      limit: 'tenants',
    });
    await app.clock.advance(MINUTE);
    const plain = { key: 'plain' };
    const results = await checkMany(app.url, [{ key: 'key', hits: 6 }, plain, plain, plain]);
    expect(results).toEqual([
      { status: 429, error: 'rate limit exceeded', retryAfter: 3540, limit: 'hour' },
      { status: 200, request_id: expect.any(String) as unknown },
      { status: 200, request_id: expect.any(String) as unknown },
      { status: 429, error: 'rate limit exceeded', retryAfter: 60 },
    ]);
  });
});

test('a denial in a pause names no limit, and lasts until one that is full has room', async () => {
  const app = await serve([RULE]);
  for (let minute = 0; minute < 2; minute += 1) {
    await fillMinute(app);
    await app.clock.advance(MINUTE);
  }
  await send(app.url, 'PUT', `${ratePath('key')}?pauseMillis=5000`);
  expect(denialIn(await check(app))).toEqual(deniedBy(undefined, '3480'));
});

test('a denial that a rule in shadow mode lets pass names no limit', async () => {
  const app = await serve([{ ...RULE, shadow: true }]);
  await fillMinute(app);
  const { status, headers, json } = await check(app);
  expect([status, headers['x-sluice-shadow']]).toEqual([200, 'denied']);
  expect(json()).toEqual({ request_id: expect.any(String) as unknown });
});

test('a check of more hits than a further limit has is a 400 that names the limit', async () => {
  const app = await serve([{ ...HITS, max_requests_per_window: 20 }]);
  await approve(app.url, 'key', '?hits=15');
  const error = 'hits must be at most 15, the maximum of the limit hour, not 16';
  expect(bodyOf(await check(app, '?hits=16'))).toEqual([400, { error, key: 'key' }]);
  expect(await checkMany(app.url, [{ key: 'key', hits: 16 }])).toEqual([{ status: 400, error }]);
});

describe('headers of further limits', () => {
  /** Ten requests a second, a thousand hits an hour and three a day that no release gives back. */
  const RULE = {
    key_pattern: 'key',
    name: 'tenants',
    max_requests_per_window: 10,
    window_millis: 1000,
    limits: [
      { name: 'hour', max_hits_per_window: 1000, window_millis: 3_600_000 },
      {
        name: 'day',
        max_requests_per_window: 3,
        window_millis: 86_400_000,
        releases_return: false,
      },
    ],
  };

  /** The headers of any form that describe the limits. */
  function limitHeaders({ headers }: Answer): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(headers).filter(([name]) => name.includes('ratelimit')),
    );
  }

  describe('in the form of the draft, the headers', () => {
    test('list the limits in force, also while the rules have others', async () => {
      const app = await serve([RULE]);
      await check(app);
      // The own window has another length, so that all limits change when it ends.
      app.change({ ...RULE, window_millis: 2000, limits: [] });
      expect(limitHeaders(await check(app))).toMatchObject({
        ratelimit: '"tenants";r=8;t=1, "hour";r=998;t=3600, "day";r=1;t=86400',
        'ratelimit-policy': expect.stringContaining('"day";q=3;w=86400') as unknown,
      });
      await app.clock.advance(1000);
      expect(limitHeaders(await check(app))).toEqual({
        'ratelimit-policy': '"tenants";q=10;w=2',
        ratelimit: '"tenants";r=9;t=2',
      });
    });
  });

  describe('in the older form, the headers', () => {
    test('of an approval describe the limit that has the least left', async () => {
      const app = await serve([RULE], { RATE_LIMIT_HEADERS: 'legacy' });
      expect(limitHeaders(await check(app))).toEqual({
        'x-ratelimit-limit': '3',
        'x-ratelimit-remaining': '2',
        'x-ratelimit-reset': '86400',
      });
    });

    test('of a denial describe the limit that denied, even if another has less left', async () => {
      const [hour, day] = RULE.limits;
      const limits = [{ ...hour, max_hits_per_window: 15 }, day];
      const app = await serve([{ ...RULE, limits }], { RATE_LIMIT_HEADERS: 'legacy' });
      await check(app, '?hits=9');
      await app.clock.advance(1000);
      await check(app, '?hits=2');
      // The hour has 4 hits left, and the day one request.
      expect(limitHeaders(await check(app, '?hits=5'))).toEqual({
        'x-ratelimit-limit': '15',
        'x-ratelimit-remaining': '4',
        'x-ratelimit-reset': '3599',
      });
    });
  });
});

describe('denials by further limits in metrics and the log', () => {
  const HOUR = 3_600_000;
  const RULE = {
    key_pattern: '.*',
    key_pattern_is_regex: true,
    max_requests_per_window: 2,
    window_millis: HOUR,
    limits: [{ name: 'day', max_requests_per_window: 1, window_millis: 24 * HOUR }],
  };
  let app: OwnApp;

  async function startWith(rule: object): Promise<void> {
    app = await start({ LOG_4XX: 'true' }, { rules: [rule] });
  }

  const byLimit = async (): Promise<unknown> =>
    (await scrape(app.url)).valuesOf('ratelimit_limit_denials_total');

  test('a denial is counted and logged with the name of the limit', async () => {
    await startWith(RULE);
    const key = uniqueKey();
    await approve(app.url, key);
    await send(app.url, 'POST', ratePath(key));
    expect(await byLimit()).toEqual({
      'ratelimit_limit_denials_total{limit="day",outcome="denied"}': 1,
    });
    const line = await app.logged(({ errorCode }) => errorCode === 'RATE_LIMIT_EXCEEDED');
    expect(line).toMatchObject({ key, limit: 'day' });
  });

  test('a denial that a rule in shadow mode lets pass is counted and logged as such', async () => {
    await startWith({ ...RULE, shadow: true });
    const key = uniqueKey();
    await approve(app.url, key);
    await send(app.url, 'POST', ratePath(key));
    expect(await byLimit()).toEqual({
      'ratelimit_limit_denials_total{limit="day",outcome="shadowed"}': 1,
    });
    const line = await app.logged(({ msg }) => String(msg).includes('shadow rule would'));
    expect(line).toMatchObject({ key, reason: 'limit_reached', limit: 'day' });
  });
});

describe('denied_takes_rest', () => {
  const HOUR = 3_600_000;

  let app: OwnApp;
  const key = useHttpKey(() => app);
  const startWith = async (rule: object = {}): Promise<void> => {
    const limits = { max_requests_per_window: 10, window_millis: HOUR, denied_takes_rest: true };
    app = await start({}, { rules: [{ key_pattern: key.name, ...limits, ...rule }] });
  };
  const statusOf = async (query = ''): Promise<number> => (await key.check(query)).status;

  test('a denied check takes what is left, and no more', async () => {
    await startWith();
    await key.approve('?hits=7');
    const denied = await key.check('?hits=5');

    expect([denied.status, denied.headers.ratelimit]).toEqual([
      429,
      expect.stringMatching(/r=0;/) as string,
    ]);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 10 });
    expect(await statusOf()).toBe(429);
  });

  test('so does one in shadow mode, which passes', async () => {
    await startWith({ shadow: true });
    expect(await statusOf('?hits=7')).toBe(200);
    expect(await statusOf('?hits=5')).toBe(200);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 10 });
  });

  test('a peek and a check that has no place to wait take nothing', async () => {
    await startWith({ max_requests_in_queue: 0 });
    await key.approve('?hits=7');
    const path = `/rate/${key.name}`;
    expect((await send(app.url, 'GET', `${path}?peek=true&hits=5`)).status).toBe(429);
    expect(await statusOf('?hits=5&canWait=true')).toBe(429);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 7 });
  });
});
