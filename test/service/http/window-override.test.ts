import { startTestApp, type TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { bodyOf, ratePath, send } from '../../support/http-client.js';
import { until } from '../../support/until.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

describe.each(bothLimiters(redis))('windowMillis (%s limiter)', (_name, settings) => {
  let app: TestApp;
  let key: string;
  beforeAll(async () => {
    app = await startTestApp({
      ...settings(),
      MAX_REQUESTS: '2',
      // A key without a check for four windows is removed, and with it what requests have set.
      WINDOW_MILLIS: '1000',
      WINDOW_MILLIS_CEILING: '3600000',
    });
  });
  afterAll(() => app.stop(0));
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (query = '') => send(app.url, 'POST', ratePath(key) + query);
  const untilLength = (millis: number) =>
    until(async () => {
      await check();
      return (await debugState(app.url, key)).Config?.WindowMillis === millis;
    });

  test('is the length from the next window on, which the headers say', async () => {
    expect((await check('?windowMillis=3600000')).status).toBe(200);
    await untilLength(3_600_000);
    const { headers } = await check();
    expect(headers['ratelimit-policy']).toBe('"default";q=2;w=3600');
    expect(headers.ratelimit).toMatch(/;t=3(600|59\d)$/);
  });

  test('can be given by an element of a bulk request', async () => {
    await checkMany(app.url, [{ key, windowMillis: 60_000 }]);
    await untilLength(60_000);
  });

  test('above the ceiling is a 403', async () => {
    expect(bodyOf(await check('?windowMillis=3600001'))).toEqual([
      403,
      { error: 'windowMillis must be at most 3600000 for this key', key },
    ]);
  });

  test('of 0 is a 400', async () => {
    expect(bodyOf(await check('?windowMillis=0'))).toEqual([
      400,
      { error: 'windowMillis must be a whole number from 1 to 31622400000', key },
    ]);
  });
});

test('windowMillis can be forbidden', async () => {
  const app = await startTestApp({ REQUESTS_CAN_SET_WINDOW: 'false' });
  try {
    expect(bodyOf(await send(app.url, 'POST', '/rate/a?windowMillis=60000'))).toEqual([
      403,
      { error: 'overriding windowMillis is disabled', key: 'a' },
    ]);
  } finally {
    await app.stop(0);
  }
});
