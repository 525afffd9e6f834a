import { StoreUnavailableError, UnavailableError } from '../../../src/limiter/errors.js';
import type { Decision, Limiter } from '../../../src/limiter/limiter.js';
import { type Environment, PATIENT_STORE } from '../../support/both-limiters.js';
import { checkMany, JSON_HEADERS, releaseMany, sendBody } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { quotaOf } from '../../support/quota.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { type FilesRead, type OwnApp, useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useApps();

const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const APPROVED = { status: 200, request_id: expect.stringMatching(UUID) as unknown };
const MISSING = 'a check that may wait is sent alone';

/** Invalid elements, and their errors. The fuzz sends more. */
const WRONG: [kind: string, element: unknown, error: string][] = [
  ['null', null, 'an element must be an object'],
  ['an empty object', {}, 'key must be a text'],
  ['a key that is a number', { key: 5 }, 'key must be a text'],
  ['a key long in bytes', { key: 'é'.repeat(257) }, 'key must be 1 to 512 bytes of UTF-8, not 514'],
  ['over 4 KiB', { key: 'k'.repeat(5000) }, 'an element must be at most 4096 bytes of JSON'],
  ['hits of 0', { key: 'k', hits: 0 }, 'hits must be a whole number from 1 to 1000000000'],
  ['canWait', { key: 'k', canWait: true }, `canWait must be left out: ${MISSING}`],
  ['maxWaitMillis', { key: 'k', maxWaitMillis: 5 }, `maxWaitMillis must be left out: ${MISSING}`],
  ['keepMillis', { key: 'k', keepMillis: 5 }, `keepMillis must be left out: ${MISSING}`],
  ['canWait that is false', { key: 'k', canWait: false }, `canWait must be left out: ${MISSING}`],
  ['an unknown field', { key: 'k', max: 5 }, 'max must be left out'],
  ['a long name', { key: 'k', ['x'.repeat(100)]: 1 }, `${'x'.repeat(64)} must be left out`],
];

describe('bulk requests', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '100' }));
  let key: string;
  beforeEach(() => {
    key = uniqueKey();
  });

  test('of 1000 checks of one key approve the first ones, as many as fit', async () => {
    const results = await checkMany(app.url, Array<object>(1000).fill({ key }));

    expect(results.map(({ status }) => status)).toEqual([
      ...Array<number>(100).fill(200),
      ...Array<number>(900).fill(429),
    ]);
    const ids = results.flatMap((result) => ('request_id' in result ? [result.request_id] : []));
    expect(new Set(ids).size).toBe(100);
    for (const id of ids) expect(id).toMatch(UUID);
    for (const result of results.slice(100)) {
      expect(result).toStrictEqual({
        status: 429,
        error: 'rate limit exceeded',
        retryAfter: expect.any(Number) as unknown,
      });
      const { retryAfter } = result as { retryAfter: number };
      expect(retryAfter).toBeGreaterThan(0);
      expect(retryAfter).toBeLessThanOrEqual(3600);
    }
    expect(await debugState(app.url, key)).toMatchObject({
      NumApprovedThisWindow: 100,
      NumDeniedThisWindow: 900,
    });
  });

  test('answer in the order of their elements, with the limits of each', async () => {
    const [one, two] = [uniqueKey(), uniqueKey()];
    const results = await checkMany(app.url, [
      { key: one, maxRequests: 1 },
      { key: two, maxRequests: 2, maxRequestsInQueue: 0 },
      { key: one },
      { key: two },
      { key: two, maxRequests: 3 },
      { key: one },
      { key: two },
    ]);

    expect(results.map(({ status }) => status)).toEqual([200, 200, 429, 200, 200, 429, 429]);
    expect((await debugState(app.url, one)).Config).toMatchObject({
      MaxRequestsPerWindow: 1,
      MaxRequestsInQueue: 400,
    });
    expect((await debugState(app.url, two)).Config).toMatchObject({
      MaxRequestsPerWindow: 3,
      MaxRequestsInQueue: 0,
    });
  });

  test.each(WRONG)('reject an element that is %s, and no other', async (_kind, wrong, error) => {
    const before = await debugState(app.url, 'k');
    const results = await checkMany(app.url, [{ key }, wrong, { key }, wrong]);
    const refused = { status: 400, error };

    expect(results).toStrictEqual([APPROVED, refused, APPROVED, refused]);
    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 2 });
    expect(await debugState(app.url, 'k')).toStrictEqual(before);
  });

  test('accept whole numbers in any JSON notation', async () => {
    const body = `[{"key":"${key}","maxRequests":2.0,"maxRequestsInQueue":1e1}]`;
    const answer = await fetch(`${app.url}/rate`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json; charset=utf-8' },
      body,
    });

    expect(answer.status).toBe(200);
    expect((await debugState(app.url, key)).Config).toMatchObject({
      MaxRequestsPerWindow: 2,
      MaxRequestsInQueue: 10,
    });
  });

  test('with no element are answered with no result, and checks are not cached', async () => {
    expect(await releaseMany(app.url, [])).toStrictEqual([]);
    const { status, headers, json } = await sendBody(app.url, 'POST', '[]');
    expect([status, json()]).toEqual([200, []]);
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'application/json',
    });
  });

  test('release each approval once', async () => {
    const results = await checkMany(app.url, [{ key }, { key }]);
    const [first, second] = results.map((result) => (result as { request_id: string }).request_id);
    const alone = await approve(app.url, key);
    const released = await releaseMany(app.url, [
      { key, request_id: first },
      { key, request_id: 'unknown' },
      { key, request_id: first },
      { key: uniqueKey(), request_id: second },
      { key, request_id: alone },
      { key },
      { key: '', request_id: second },
      { key, request_id: second, more: 1 },
      { key, request_id: 5 },
      'x',
    ]);

    const notFound = { status: 404, error: 'request not found' };
    expect(released).toStrictEqual([
      { status: 200 },
      notFound,
      notFound,
      notFound,
      { status: 200 },
      { status: 400, error: 'request_id must be a text' },
      { status: 400, error: 'key must be 1 to 512 bytes of UTF-8, not 0' },
      { status: 400, error: 'more must be left out' },
      { status: 400, error: 'request_id must be a text' },
      { status: 400, error: 'an element must be an object' },
    ]);
    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 1 });
    expect((await send(app.url, 'DELETE', `${ratePath(key)}/${second!}`)).status).toBe(200);
  });

  test('count each of their checks', async () => {
    const decided = async (outcome: string, reason: string): Promise<number> =>
      (await scrape(app.url)).value('ratelimit_decisions_total', {
        outcome,
        reason,
        decided_by: 'store',
      });
    const [approved, denied] = [
      await decided('approved', 'capacity'),
      await decided('denied', 'limit_reached'),
    ];
    await checkMany(app.url, [{ key, maxRequests: 2 }, { key }, { key }, 5, { key: '' }]);

    expect(await decided('approved', 'capacity')).toBe(approved + 2);
    expect(await decided('denied', 'limit_reached')).toBe(denied + 1);
  });
});

describe('the policies of elements', () => {
  const APPROVED = { status: 200, request_id: expect.any(String) as unknown };
  const DENIED = {
    status: 429,
    error: 'rate limit exceeded',
    retryAfter: expect.any(Number) as unknown,
  };

  describe('elements of a bulk request', () => {
    let app: OwnApp;
    let key: string;
    beforeEach(() => {
      key = uniqueKey();
    });

    async function startWith(environment: Environment, files?: FilesRead): Promise<void> {
      const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
      app = await start({ ...hour, ...environment }, files);
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
      await startWith({}, { tokens: [team, owner] });
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

  const REQUEST_ID = 'a4e5d9b1-206d-4df5-bff1-7f4662b31529';

  test('each element gets its own outcome', async () => {
    const outcomes: Record<string, () => Promise<Decision>> = {
      good: () => Promise.resolve({ outcome: 'approved', requestId: REQUEST_ID }),
      full: () =>
        Promise.resolve({ outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1500) }),
      allowed: () =>
        Promise.resolve({ outcome: 'approved', requestId: REQUEST_ID, outagePolicy: 'allow' }),
      deniedAlone: () =>
        Promise.resolve({
          outcome: 'denied',
          reason: 'limit_reached',
          quota: quotaOf(1500),
          outagePolicy: 'local',
        }),
      away: () => Promise.reject(new StoreUnavailableError()),
      stopping: () => Promise.reject(new UnavailableError('shutting_down')),
      crowded: () => Promise.reject(new UnavailableError('key_full')),
      broken: () => Promise.reject(new Error('broken')),
    };
    const limiter = {
      waiting: () => 0,
      check: ({ key }) => outcomes[key]!(),
      ask: (_release, { key }) => outcomes[key]!().then(() => true as never),
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
      {
        status: 503,
        error:
          'the key has too many approvals, holds or groups: try again later, or raise MAX_IDS_PER_KEY, MAX_HOLDS_PER_KEY or MAX_GROUPS_PER_KEY',
        retryAfter: 1,
      },
      { status: 500, error: 'internal error' },
    ];
    expect(checked).toStrictEqual([
      { status: 200, request_id: REQUEST_ID },
      { status: 429, error: 'rate limit exceeded', retryAfter: 2 },
      { status: 200, request_id: REQUEST_ID, outagePolicy: 'allow' },
      { status: 429, error: 'rate limit exceeded', retryAfter: 2, outagePolicy: 'local' },
      ...failures,
    ]);
    expect(released).toStrictEqual([...Array<object>(4).fill({ status: 200 }), ...failures]);
    for (const reason of ['store_unavailable', 'shutting_down', 'key_full']) {
      expect(metrics.value('ratelimit_failed_checks_total', { reason })).toBe(1);
    }
  });
});
