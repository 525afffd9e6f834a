import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { ratePath, send } from '../../support/http-client.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useApp } from '../../support/use-apps.js';

const CHECKER = { name: 'checker', token: 'token-that-may-check', scopes: ['check'] };
const OWNER = { name: 'owner', token: 'token-that-may-configure', scopes: ['check', 'configure'] };
const CONFIGURER = { name: 'configurer', token: 'token-without-checks', scopes: ['configure'] };
const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };

const redis = useRedis();

describe.each(bothLimiters(redis))('overrides (%s limiter)', (_name, settings) => {
  const app = useApp(
    () => ({
      ...settings(),
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '5',
    }),
    { tokens: [CHECKER, OWNER, CONFIGURER, OPERATOR] },
  );
  let key: string;
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (caller: { token: string }, query = '') =>
    send(app.url, 'POST', `${ratePath(key)}${query}`, bearer(caller));

  test.each([
    ['leaves no room', '?maxRequests=1'],
    ['lifts all limits', '?maxRequests=1000000000&maxRequestsInQueue=100000'],
    ['closes the queue', '?maxRequestsInQueue=0'],
    ['changes nothing', '?maxRequests=5'],
  ])(
    'an override that %s is forbidden to a token with only the scope check',
    async (_what, query) => {
      expect((await check(CHECKER)).status).toBe(200);
      const before = await debugState(app.url, key, bearer(OPERATOR));
      for (const wait of ['', '&canWait=true']) {
        const { status, headers, json } = await check(CHECKER, query + wait);

        expect([status, headers['www-authenticate']]).toEqual([
          403,
          'Bearer realm="sluice", error="insufficient_scope", scope="configure"',
        ]);
        expect(json()).toStrictEqual({ error: 'the token lacks the scope configure', key });
      }

      expect(await debugState(app.url, key, bearer(OPERATOR))).toStrictEqual(before);
      expect((await check(CHECKER)).status).toBe(200);
    },
  );

  test('a token that may set limits sets them', async () => {
    expect((await check(OWNER, '?maxRequests=1&maxRequestsInQueue=7')).status).toBe(200);

    expect((await debugState(app.url, key, bearer(OPERATOR))).Config).toMatchObject({
      MaxRequestsPerWindow: 1,
      MaxRequestsInQueue: 7,
    });
    expect((await check(CHECKER)).status).toBe(429);
  });

  test('need the scope check besides configure', async () => {
    const { status, json } = await check(CONFIGURER, '?maxRequests=1');

    expect([status, json()]).toEqual([403, { error: 'the token lacks the scope check', key }]);
  });

  test('a wrong parameter is rejected as such, whatever the scopes', async () => {
    expect((await check(CHECKER, '?maxRequests=none')).status).toBe(400);
  });
});
