import { StoreUnavailableError, UnavailableError } from '../../../src/limiter/errors.js';
import type { Decision, Limiter } from '../../../src/limiter/limiter.js';
import { bothLimiters, type Environment, PATIENT_STORE } from '../../support/both-limiters.js';
import { checkMany, JSON_HEADERS, releaseMany, sendBody } from '../../support/bulk-client.js';
import { approve } from '../../support/http-client.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { scrape } from '../../support/prometheus-text.js';
import { quotaOf } from '../../support/quota.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { type FilesRead, type OwnApp, useApps } from '../../support/use-apps.js';

const redis = useRedis();
const start = useApps();

const APPROVED = { status: 200, request_id: expect.any(String) as unknown };
const DENIED = {
  status: 429,
  error: 'rate limit exceeded',
  retryAfter: expect.any(Number) as unknown,
};

describe.each(bothLimiters(redis))('elements of a bulk request (%s limiter)', (_name, settings) => {
  let app: OwnApp;
  let key: string;
  beforeEach(() => {
    key = uniqueKey();
  });

  async function startWith(environment: Environment, files?: FilesRead): Promise<void> {
    const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
    app = await start({ ...settings(), ...hour, ...environment }, files);
  }

  test('follow the rules of their keys', async () => {
    const rules = [
      { key_pattern: `${key}-shadow`, max_requests_per_window: 1, shadow: true },
      { key_pattern: `${key}-ceiling`, max_requests_per_window: 2, max_requests_ceiling: 5 },
    ];
    await startWith({ UNKNOWN_KEYS: 'deny', REQUESTS_CAN_MOD_QUEUE: 'false' }, { rules });
    const shadow = { key: `${key}-shadow` };
    const ceiling = { key: `${key}-ceiling` };

    expect(
      await checkMany(app.url, [
        shadow,
        shadow,
        { key: `${key}-stranger` },
        { ...ceiling, maxRequests: 6 },
        { ...ceiling, maxRequestsInQueue: 1 },
        ceiling,
        ceiling,
        { ...ceiling, maxRequests: 1 },
      ]),
    ).toStrictEqual([
      APPROVED,
      { ...APPROVED, shadow: 'denied' },
      { status: 403, error: 'no rule matches the key' },
      { status: 403, error: 'maxRequests must be at most 5 for this key' },
      { status: 403, error: 'overriding maxRequestsInQueue is disabled' },
      APPROVED,
      APPROVED,
      DENIED,
    ]);
  });

  test('need a token for their key, and overrides need the scope configure', async () => {
    const scopes = ['check', 'release'];
    const token = 'token-for-keys-of-the-team';
    const team = { name: 'team', token, scopes, key_patterns: [`${key}.*`] };
    const owner = {
      name: 'owner',
      token: 'token-for-everything',
      scopes: [...scopes, 'configure', 'debug'],
    };
    const debug = { name: 'debug', token: 'token-for-debugging', scopes: ['debug'] };
    await startWith({}, { tokens: [team, owner, debug] });
    const other = uniqueKey();
    const [own, foreign] = await checkMany(
      app.url,
      [{ key: `${key}-b` }, { key: other }],
      bearer(owner),
    );
    const forbidden = { status: 403, error: 'the token does not allow this key' };
    const body = JSON.stringify([{ key }, { key: other }, { key, maxRequests: 5 }]);
    const answer = await sendBody(app.url, 'POST', body, { ...JSON_HEADERS, ...bearer(team) });

    expect([answer.status, answer.json()]).toEqual([
      200,
      [APPROVED, forbidden, { status: 403, error: 'the token lacks the scope configure' }],
    ]);
    expect(answer.headers).not.toHaveProperty('www-authenticate');
    expect(
      await releaseMany(
        app.url,
        [own, foreign].map((result, index) => ({
          key: [`${key}-b`, other][index],
          request_id: (result as { request_id: string }).request_id,
        })),
        bearer(team),
      ),
    ).toStrictEqual([{ status: 200 }, forbidden]);
    const rejected = (await scrape(app.url, bearer(owner))).value(
      'ratelimit_auth_rejections_total',
      {
        reason: 'key_not_allowed',
      },
    );
    expect(rejected).toBe(2);
    for (const method of ['POST', 'DELETE']) {
      const statuses = [];
      for (const headers of [{}, bearer(debug), { Authorization: 'Bearer unknown' }]) {
        const { status } = await sendBody(app.url, method, '[]', { ...JSON_HEADERS, ...headers });
        statuses.push(status);
      }
      expect(statuses).toEqual([401, 403, 401]);
    }
  });

  test('that are denied or rejected have one log line if LOG_4XX=true', async () => {
    await startWith({ LOG_4XX: 'true' });
    const elements = [{ key }, { key }, { key }, { key: '' }, 5];
    await checkMany(app.url, elements, { 'X-Correlation-ID': key });
    await checkMany(app.url, [{ key: uniqueKey() }], { 'X-Correlation-ID': uniqueKey() });
    await app.stop(0);

    expect(
      app.log.filter(({ msg }) => msg === 'elements of a bulk request denied or rejected'),
    ).toEqual([
      expect.objectContaining({
        level: 'info',
        correlationId: key,
        errors: { RATE_LIMIT_EXCEEDED: 2, INVALID_KEY_LENGTH: 1, INVALID_PARAMETER: 1 },
      }),
    ]);
  });

  test('that are denied or rejected have no log line by default', async () => {
    await startWith({});
    await checkMany(app.url, [{ key }, { key }, 5]);
    await app.stop(0);

    expect(
      app.log.filter(({ msg }) => msg === 'elements of a bulk request denied or rejected'),
    ).toEqual([]);
  });
});

test('a key without room in the store harms no other', async () => {
  const app = await start({ MAX_KEYS: '1', MAX_REQUESTS: '2', WINDOW_MILLIS: '3600000' });
  const key = uniqueKey();
  const full = { status: 503, error: 'store full: no room for another key', retryAfter: 1 };
  const results = await checkMany(app.url, [{ key }, { key: uniqueKey() }, { key }, { key }]);
  const failed = (await scrape(app.url)).value('ratelimit_failed_checks_total', {
    reason: 'store_full',
  });

  expect(results).toStrictEqual([APPROVED, full, APPROVED, DENIED]);
  expect(failed).toBe(1);
});

test('a key with a damaged state harms no other, and the log has the cause', async () => {
  const app = await start({
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: `${uniqueKey()}:`,
  });
  const key = uniqueKey();
  await approve(app.url, key);
  const [name] = await redis.client.keys(`*:{${key}}`);
  await redis.client.set(name!, 'not a hash', 'EX', 3600);
  const results = await checkMany(app.url, [{ key: uniqueKey() }, { key }, { key: uniqueKey() }]);
  await app.stop(0);

  expect(results).toStrictEqual([APPROVED, { status: 500, error: 'internal error' }, APPROVED]);
  expect(app.log.filter(({ level }) => level === 'error')).toEqual([
    expect.objectContaining({
      errorCode: 'INTERNAL_ERROR',
      place: 1,
      err: expect.anything() as unknown,
    }),
  ]);
});

test('while the store is down each element fails, or the policy decides and says so', async () => {
  const away = { REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200', MAX_REQUESTS: '1' };
  const unavailable = { status: 503, error: 'store unavailable', retryAfter: 1 };
  const expected = {
    deny: [unavailable, unavailable],
    allow: [
      { ...APPROVED, outagePolicy: 'allow' },
      { ...APPROVED, outagePolicy: 'allow' },
    ],
    local: [
      { ...APPROVED, outagePolicy: 'local' },
      { ...DENIED, outagePolicy: 'local' },
    ],
  };
  for (const [policy, results] of Object.entries(expected)) {
    const app = await start({ ...away, STORE_OUTAGE_POLICY: policy, WINDOW_MILLIS: '3600000' });
    const key = uniqueKey();

    expect(await checkMany(app.url, [{ key }, { key }])).toStrictEqual(results);
  }
});

const REQUEST_ID = 'a4e5d9b1-206d-4df5-bff1-7f4662b31529';

test('each element gets its own outcome', async () => {
  const outcomes: Record<string, () => Promise<Decision>> = {
    good: () => Promise.resolve({ outcome: 'approved', requestId: REQUEST_ID }),
    full: () =>
      Promise.resolve({ outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1500) }),
    away: () => Promise.reject(new StoreUnavailableError()),
    stopping: () => Promise.reject(new UnavailableError('shutting_down')),
    crowded: () => Promise.reject(new UnavailableError('key_full')),
    broken: () => Promise.reject(new Error('broken')),
  };
  const limiter = {
    waiting: 0,
    check: ({ key }) => outcomes[key]!(),
    release: (key) => outcomes[key]!().then(() => true),
  } as Partial<Limiter>;
  const app = await serve(httpAppOver(limiter as Limiter));
  const keys = Object.keys(outcomes);
  const checked = await checkMany(
    app.url,
    keys.map((key) => ({ key })),
  );
  const released = await releaseMany(
    app.url,
    keys.map((key) => ({ key, request_id: REQUEST_ID })),
  );
  const metrics = await scrape(app.url);
  await app.close();

  const failures = [
    { status: 503, error: 'store unavailable', retryAfter: 1 },
    { status: 503, error: 'shutting down', retryAfter: 1 },
    { status: 503, error: 'too many approvals of the key', retryAfter: 1 },
    { status: 500, error: 'internal error' },
  ];
  expect(checked).toStrictEqual([
    { status: 200, request_id: REQUEST_ID },
    { status: 429, error: 'rate limit exceeded', retryAfter: 2 },
    ...failures,
  ]);
  expect(released).toStrictEqual([{ status: 200 }, { status: 200 }, ...failures]);
  for (const reason of ['store_unavailable', 'shutting_down', 'key_full']) {
    expect(metrics.value('ratelimit_failed_checks_total', { reason })).toBe(1);
  }
});

test('a replica that stops asks the clients of bulk requests to close their connections', async () => {
  const app = await start({ SHUTDOWN_DELAY_MILLIS: '60000' });
  const hurry = new AbortController();
  const stopped = app.stop(0, hurry.signal);
  const answer = await sendBody(app.url, 'POST', JSON.stringify([{ key: uniqueKey() }]));
  hurry.abort();
  await stopped;

  expect(answer.json()).toStrictEqual([APPROVED]);
  expect(answer.headers.connection).toBe('close');
});
