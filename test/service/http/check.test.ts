import { type TestApp, startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { approve, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const WINDOW_MILLIS = 3_600_000;

const redis = useRedis();

describe.each(bothLimiters(redis))('a check (%s limiter)', (_name, settings) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      ...settings(),
      WINDOW_MILLIS: String(WINDOW_MILLIS),
      MAX_REQUESTS: '1',
      MAX_REQUESTS_IN_QUEUE: '7',
    });
  });
  afterAll(() => app.stop(0));

  describe.each(['POST', 'GET'])('with %s', (method) => {
    test('is approved with only a request id', async () => {
      const answer = await send(app.url, method, `/rate/${uniqueKey()}`);

      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toBe('application/json');
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers).not.toHaveProperty('retry-after');
      expect(answer.headers).not.toHaveProperty('etag');
      expect(answer.json()).toStrictEqual({ request_id: expect.stringMatching(UUID) as unknown });
    });

    test('is denied when the window is full', async () => {
      const key = uniqueKey();
      await approve(app.url, key);
      const answer = await send(app.url, method, `/rate/${key}`);

      expect(answer.status).toBe(429);
      expect(answer.headers['content-type']).toBe('application/json');
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.json()).toStrictEqual({ error: 'rate limit exceeded', key });
      expect(await debugState(app.url, key)).toMatchObject({
        NumApprovedThisWindow: 1,
        NumDeniedThisWindow: 1,
      });
    });

    test('takes its parameters from the query', async () => {
      const key = uniqueKey();
      await send(app.url, method, `/rate/${key}?canWait=false&maxRequests=3&maxRequestsInQueue=5`);

      expect(await debugState(app.url, key)).toMatchObject({
        Config: { WindowMillis: WINDOW_MILLIS, MaxRequestsPerWindow: 3, MaxRequestsInQueue: 5 },
        NumApprovedThisWindow: 1,
      });
    });
  });

  test('GET and POST of a key count in the same window', async () => {
    const key = uniqueKey();

    expect((await send(app.url, 'GET', `/rate/${key}`)).status).toBe(200);
    expect((await send(app.url, 'POST', `/rate/${key}`)).status).toBe(429);
  });

  test('says in a denial in how many whole seconds the window ends', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const { headers } = await send(app.url, 'POST', `/rate/${key}`);

    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(WINDOW_MILLIS / 1000);
    // The window began a moment ago, so most of its seconds are left.
    expect(Number(headers['retry-after'])).toBeGreaterThan(WINDOW_MILLIS / 1000 / 2);
  });

  test.each(['true', 'false', '1', '0', 'TRUE', 'False', 'tRuE'])(
    'accepts canWait=%s',
    async (value) => {
      const answer = await send(app.url, 'POST', `/rate/${uniqueKey()}?canWait=${value}`);

      expect(answer.status).toBe(200);
    },
  );

  test.each(['false', '0', 'FALSE'])('does not wait with canWait=%s', async (value) => {
    const key = uniqueKey();
    await approve(app.url, key);

    expect((await send(app.url, 'POST', `/rate/${key}?canWait=${value}`)).status).toBe(429);
  });
});

describe.each(bothLimiters(redis))('a denial (%s limiter)', (_name, settings) => {
  test('says to come back in one second at the earliest, however short the window is', async () => {
    const app = await startTestApp({ ...settings(), WINDOW_MILLIS: '100', MAX_REQUESTS: '1' });
    const key = uniqueKey();
    let answer = await send(app.url, 'POST', `/rate/${key}`);
    while (answer.status === 200) answer = await send(app.url, 'POST', `/rate/${key}`);
    await app.stop(0);

    expect(answer.status).toBe(429);
    expect(answer.headers['retry-after']).toBe('1');
  });
});

describe.each(bothLimiters(redis))(
  'overrides that are forbidden (%s limiter)',
  (_name, settings) => {
    describe.each([
      ['maxRequests', 'REQUESTS_CAN_SET_RATE', 'maxRequestsInQueue'],
      ['maxRequestsInQueue', 'REQUESTS_CAN_MOD_QUEUE', 'maxRequests'],
    ])('%s by %s=false', (forbidden, setting, allowed) => {
      let app: TestApp;
      beforeAll(async () => {
        app = await startTestApp({ ...settings(), [setting]: 'false' });
      });
      afterAll(() => app.stop(0));

      test.each(['POST', 'GET'])('%s gets a 403 that names the override', async (method) => {
        const key = uniqueKey();
        const answer = await send(app.url, method, `/rate/${key}?${forbidden}=5`);

        expect(answer.status).toBe(403);
        expect(answer.headers['content-type']).toBe('application/json');
        expect(answer.json()).toStrictEqual({
          error: expect.stringMatching(new RegExp(`\\b${forbidden}\\b`)) as unknown,
          key,
        });
      });

      test('creates no key', async () => {
        const key = uniqueKey();
        await send(app.url, 'POST', `/rate/${key}?${forbidden}=5`);

        expect(await debugState(app.url, key)).toStrictEqual({ Key: key, Found: false });
      });

      test('counts and changes nothing on a key that exists', async () => {
        const key = uniqueKey();
        await approve(app.url, key);
        const before = await debugState(app.url, key);
        await send(app.url, 'POST', `/rate/${key}?${forbidden}=5`);

        expect((await debugState(app.url, key)).Config).toStrictEqual(before.Config);
        expect((await debugState(app.url, key)).NumDeniedThisWindow).toBe(0);
      });

      test('leaves the other override and the check itself alone', async () => {
        const key = uniqueKey();

        expect((await send(app.url, 'POST', `/rate/${key}?${allowed}=5`)).status).toBe(200);
        expect((await send(app.url, 'POST', `/rate/${uniqueKey()}`)).status).toBe(200);
      });

      test('gets a 400 if its value is wrong', async () => {
        const answer = await send(app.url, 'POST', `/rate/${uniqueKey()}?${forbidden}=x`);

        expect(answer.status).toBe(400);
      });
    });
  },
);
