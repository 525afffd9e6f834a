import { bothLimiters } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { approve, approvedId, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const UNKNOWN_ID = '3f3c9e5d-8a07-4a4e-9d62-111111111111';

const redis = useRedis();
const start = useApps();

describe.each(bothLimiters(redis))('hits (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), MAX_REQUESTS: '10', WINDOW_MILLIS: '3600000' }));
  const key = useHttpKey(() => app);

  test('belong to each element of a bulk request', async () => {
    const results = await checkMany(app.url, [
      { key: key.name, hits: 6 },
      { key: key.name, hits: 5 },
      { key: key.name },
      { key: key.name, hits: 12 },
      { key: key.name, hits: 0 },
    ]);
    expect(results).toMatchObject([
      { status: 200 },
      { status: 429 },
      { status: 200 },
      { status: 400, error: 'hits must be at most 10, the maximum of the key, not 12' },
      { status: 400, error: 'hits must be a whole number from 1 to 1000000000' },
    ]);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 7 });
  });

  test.each([
    ['?hits=-1', 'hits must be a whole number from 0 to 1000000000'],
    ['?hits=1.5', 'hits must be a whole number from 0 to 1000000000'],
    ['?hits=1&hits=2', 'hits must be given once'],
    ['?hit=1', 'unknown parameter hit; did you mean hits?'],
    ['?maxRequests=1', 'unknown parameter maxRequests; did you mean hits?'],
  ])('can not be corrected by PUT with %j', async (query, error) => {
    const id = await key.approve();
    expect(bodyOf(await key.amend(id, query))).toEqual([400, { error, key: key.name }]);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 1 });
  });
});

test('a correction takes the scope check, and also the scope release if it gives everything back', async () => {
  const asks = { name: 'asks', token: 'a'.repeat(40), scopes: ['check'] };
  const givesBack = { name: 'gives-back', token: 'b'.repeat(40), scopes: ['release'] };
  const both = { name: 'both', token: 'c'.repeat(40), scopes: ['check', 'release'] };
  const app = await start({}, { tokens: [asks, givesBack, both] });
  const key = uniqueKey();
  const id = approvedId(await send(app.url, 'POST', ratePath(key), bearer(asks)));
  const correct = async (hits: number, caller: typeof asks): Promise<unknown[]> =>
    bodyOf(await send(app.url, 'PUT', `${ratePath(key)}/${id}?hits=${hits}`, bearer(caller)));
  const lacks = (scope: string) => [403, { error: `the token lacks the scope ${scope}`, key }];
  expect(await correct(2, givesBack)).toEqual(lacks('check'));
  expect(await correct(2, asks)).toEqual([200, { request_id: id, hits: 2 }]);
  expect(await correct(0, asks)).toEqual(lacks('release'));
  expect(await correct(0, both)).toEqual([200, { request_id: id, hits: 0 }]);
});

test.each([
  ['of the rule', 'bounded', 7],
  ['of ten times the maximum without one', 'other', 10],
])('a correction has the bound %s', async (_whose, key, max) => {
  const rule = { key_pattern: 'bounded', max_requests_per_window: 5, max_corrected_hits: 7 };
  const app = await start({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }, { rules: [rule] });
  const id = await approve(app.url, key);
  const correct = (hits: number) => send(app.url, 'PUT', `${ratePath(key)}/${id}?hits=${hits}`);
  const error = `hits must be at most ${max} in a correction for this key, not ${max + 1}`;
  expect(bodyOf(await correct(max + 1))).toEqual([403, { error, key }]);
  expect((await correct(max)).status).toBe(200);
});

describe('a parameter that does not exist', () => {
  const app = useApp();
  const key = useHttpKey(() => app);

  test.each([
    ['?hit=3', 'hit', 'hits'],
    ['?maxRequest=5', 'maxRequest', 'maxRequests'],
    ['?canwait=true', 'canwait', 'canWait'],
    ['?maxRequests[]=5', 'maxRequests[]', 'maxRequests'],
    ['?max_wait_millis=5', 'max_wait_millis', 'maxWaitMillis'],
    ['?hits=2&canWaits=true', 'canWaits', 'canWait'],
  ])('of a check is a 400 that names the nearest one: %s', async (query, given, nearest) => {
    expect(bodyOf(await key.check(query))).toEqual([
      400,
      { error: `unknown parameter ${given}; did you mean ${nearest}?`, key: key.name },
    ]);
    expect(await key.state()).toEqual({ Key: key.name, Found: false });
  });

  test('is quoted in part only', async () => {
    expect((await key.check(`?${'x'.repeat(5000)}=1`)).text.length).toBeLessThan(200);
  });

  test.each([
    ['POST', '/rate?key=a', 'key'],
    ['DELETE', '/rate?hits=2', 'hits'],
    ['DELETE', `/rate/a/${UNKNOWN_ID}?hits=2`, 'hits'],
  ])('of %s %s is a 400', async (method, path, parameter) => {
    expect(bodyOf(await send(app.url, method, path))).toMatchObject([
      400,
      { error: `${parameter} must be left out of the URL` },
    ]);
  });
});
