import { bothLimiters } from '../../support/both-limiters.js';
import { type Answer, approve, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const WINDOW_MILLIS = 3_600_000;

const redis = useRedis();

describe.each(bothLimiters(redis))('a check (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({
    ...settings(),
    WINDOW_MILLIS: String(WINDOW_MILLIS),
    MAX_REQUESTS: '1',
  }));

  describe.each(['POST', 'GET'])('with %s', (method) => {
    const key = useHttpKey(() => app);
    const check = (query = ''): Promise<Answer> =>
      send(app.url, method, ratePath(key.name) + query);

    test('is approved with only a request id', async () => {
      const { status, headers, json } = await check();

      expect(status).toBe(200);
      expect(headers['content-type']).toBe('application/json');
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers).not.toHaveProperty('retry-after');
      expect(headers).not.toHaveProperty('etag');
      expect(json()).toStrictEqual({ request_id: expect.stringMatching(UUID) as unknown });
    });

    test('is denied when checks of any method have filled the window', async () => {
      await key.approve();
      const { status, headers, json } = await check();

      expect(status).toBe(429);
      expect(headers['content-type']).toBe('application/json');
      expect(headers['cache-control']).toBe('no-store');
      expect(json()).toStrictEqual({ error: 'rate limit exceeded', key: key.name });
    });

    test('takes its parameters from the query', async () => {
      await check('?canWait=false&maxRequests=3&maxRequestsInQueue=5');

      expect(await key.state()).toMatchObject({
        Config: { WindowMillis: WINDOW_MILLIS, MaxRequestsPerWindow: 3, MaxRequestsInQueue: 5 },
        NumApprovedThisWindow: 1,
      });
    });
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

describe.each([
  ['maxRequests', 'REQUESTS_CAN_SET_RATE', 'maxRequestsInQueue'],
  ['maxRequestsInQueue', 'REQUESTS_CAN_MOD_QUEUE', 'maxRequests'],
])('an override that is forbidden: %s by %s=false', (forbidden, setting, allowed) => {
  const app = useApp(() => ({ [setting]: 'false' }));
  const key = useHttpKey(() => app);

  test('is a 403 that names the override, and counts and changes nothing', async () => {
    await key.approve();
    const before = await key.state();
    for (const method of ['POST', 'GET']) {
      const answer = await send(app.url, method, `${ratePath(key.name)}?${forbidden}=5`);
      const error = `overriding ${forbidden} is disabled`;
      expect(bodyOf(answer)).toStrictEqual([403, { error, key: key.name }]);
    }
    expect(await key.state()).toStrictEqual(before);
  });

  test('leaves the other override and the check itself alone', async () => {
    expect((await key.check(`?${allowed}=5`)).status).toBe(200);
    expect((await key.check()).status).toBe(200);
  });

  test('gets a 400 if its value is wrong', async () => {
    expect((await key.check(`?${forbidden}=x`)).status).toBe(400);
  });
});
