import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { bothLimiters } from '../../support/both-limiters.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { checkMany } from '../../support/bulk-client.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, approvedId, begin, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const UNKNOWN_ID = '3f3c9e5d-8a07-4a4e-9d62-111111111111';

const redis = useRedis();
const folder = useTemporaryFolder();

describe.each(bothLimiters(redis))('hits (%s limiter)', (_name, settings) => {
  let app: TestApp;
  let key: string;
  beforeAll(async () => {
    app = await startTestApp({ ...settings(), MAX_REQUESTS: '10', WINDOW_MILLIS: '3600000' });
  });
  afterAll(() => app.stop(0));
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (query: string) => send(app.url, 'POST', ratePath(key) + query);
  const amend = (id: string, query: string) =>
    send(app.url, 'PUT', `${ratePath(key)}/${id}${query}`);
  const approved = async (): Promise<unknown> =>
    (await debugState(app.url, key)).NumApprovedThisWindow;

  test('are taken as a whole, and named by the quota', async () => {
    const { status, headers } = await check('?hits=7');
    expect([status, headers.ratelimit]).toEqual([200, expect.stringMatching(/;r=3;/)]);
    expect((await check('?hits=4')).status).toBe(429);
    expect((await check('?hits=3')).status).toBe(200);
    expect(await approved()).toBe(10);
  });

  test('above the maximum are a 400 that names both, and count nothing', async () => {
    expect(bodyOf(await check('?hits=11'))).toEqual([
      400,
      { error: 'hits must be at most 10, the maximum of the key, not 11', key },
    ]);
    expect((await check('?hits=11&canWait=true')).status).toBe(400);
    expect(await debugState(app.url, key)).toMatchObject({
      NumApprovedThisWindow: 0,
      NumDeniedThisWindow: 0,
      NumWaiting: 0,
    });
  });

  test('may be waited for', async () => {
    const holder = await approve(app.url, key, '?hits=9');
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?hits=5&canWait=true`);
    await untilWaiting(app.url, key, 1);
    expect((await check('')).status).toBe(429);
    await send(app.url, 'DELETE', `${ratePath(key)}/${holder}`);
    expect((await waiting.answer).status).toBe(200);
    expect(await approved()).toBe(5);
  });

  test('belong to each element of a bulk request', async () => {
    const results = await checkMany(app.url, [
      { key, hits: 6 },
      { key, hits: 5 },
      { key },
      { key, hits: 12 },
      { key, hits: 0 },
    ]);
    expect(results).toMatchObject([
      { status: 200 },
      { status: 429 },
      { status: 200 },
      { status: 400, error: 'hits must be at most 10, the maximum of the key, not 12' },
      { status: 400, error: 'hits must be a whole number from 1 to 1000000000' },
    ]);
    expect(await approved()).toBe(7);
  });

  describe('can be corrected', () => {
    test('downwards and upwards, which is answered with the new number', async () => {
      const id = await approve(app.url, key, '?hits=4');
      expect(bodyOf(await amend(id, '?hits=1'))).toEqual([200, { request_id: id, hits: 1 }]);
      expect(await approved()).toBe(1);
      expect((await amend(id, '?hits=30')).status).toBe(200);
      expect(await approved()).toBe(30);
      const { status, headers } = await check('');
      expect([status, headers.ratelimit]).toEqual([429, expect.stringMatching(/;r=0;/)]);
    });

    test('not once they no longer count', async () => {
      const id = await approve(app.url, key);
      await send(app.url, 'DELETE', `${ratePath(key)}/${id}`);
      for (const unknown of [id, UNKNOWN_ID, 'x']) {
        expect(bodyOf(await amend(unknown, '?hits=2'))).toEqual([
          404,
          { error: 'request not found', key },
        ]);
      }
    });

    test.each([
      ['?hits=-1', 'hits must be a whole number from 0 to 1000000000'],
      ['?hits=1.5', 'hits must be a whole number from 0 to 1000000000'],
      ['?hits=1&hits=2', 'hits must be given once'],
      ['?hit=1', 'unknown parameter hit; did you mean hits?'],
      ['?maxRequests=1', 'unknown parameter maxRequests; did you mean hits?'],
    ])('but not by PUT with %j', async (query, error) => {
      const id = await approve(app.url, key);
      expect(bodyOf(await amend(id, query))).toEqual([400, { error, key }]);
      expect(await approved()).toBe(1);
    });
  });
});

test('a correction takes the scope check, and also the scope release if it gives everything back', async () => {
  const asks = { name: 'asks', token: 'a'.repeat(40), scopes: ['check'] };
  const givesBack = { name: 'gives-back', token: 'b'.repeat(40), scopes: ['release'] };
  const both = { name: 'both', token: 'c'.repeat(40), scopes: ['check', 'release'] };
  const file = await tokenFile(folder, asks, givesBack, both);
  const app = await startTestApp({ AUTH_TOKENS_FILE: file });
  const key = uniqueKey();
  const id = approvedId(await send(app.url, 'POST', ratePath(key), bearer(asks)));
  const correct = async (hits: number, caller: typeof asks): Promise<unknown[]> =>
    bodyOf(await send(app.url, 'PUT', `${ratePath(key)}/${id}?hits=${hits}`, bearer(caller)));
  const lacks = (scope: string) => [403, { error: `the token lacks the scope ${scope}`, key }];
  expect(await correct(2, givesBack)).toEqual(lacks('check'));
  expect(await correct(2, asks)).toEqual([200, { request_id: id, hits: 2 }]);
  expect(await correct(0, asks)).toEqual(lacks('release'));
  expect(await correct(0, both)).toEqual([200, { request_id: id, hits: 0 }]);
  await app.stop(0);
});

test('rules say how many hits a correction may set', async () => {
  const CONFIG_FILE = join(folder, uniqueKey());
  const rule = { key_pattern: 'bounded', max_requests_per_window: 5, max_corrected_hits: 7 };
  await writeFile(CONFIG_FILE, JSON.stringify({ keys: [rule] }));
  const app = await startTestApp({ CONFIG_FILE, WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' });
  const correct = async (key: string, ...hits: number[]): Promise<unknown[]> => {
    const id = await approve(app.url, key);
    const answers: unknown[] = [];
    for (const each of hits) {
      const [status, body] = bodyOf(
        await send(app.url, 'PUT', `${ratePath(key)}/${id}?hits=${each}`),
      );
      answers.push(status === 200 ? status : [status, body]);
    }
    return answers;
  };
  const rejected = (key: string, max: number, hits: number): unknown => {
    const error = `hits must be at most ${max} in a correction for this key, not ${hits}`;
    return [403, { error, key }];
  };
  expect(await correct('bounded', 8, 7)).toEqual([rejected('bounded', 7, 8), 200]);
  expect(await correct('other', 11, 10)).toEqual([rejected('other', 10, 11), 200]);
  await app.stop(0);
});

describe('a parameter that does not exist', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({});
  });
  afterAll(() => app.stop(0));

  test.each([
    ['?hit=3', 'hit', 'hits'],
    ['?maxRequest=5', 'maxRequest', 'maxRequests'],
    ['?canwait=true', 'canwait', 'canWait'],
    ['?maxRequests[]=5', 'maxRequests[]', 'maxRequests'],
    ['?max_wait_millis=5', 'max_wait_millis', 'maxWaitMillis'],
    ['?hits=2&canWaits=true', 'canWaits', 'canWait'],
  ])('of a check is a 400 that names the nearest one: %s', async (query, given, nearest) => {
    const key = uniqueKey();
    expect(bodyOf(await send(app.url, 'POST', ratePath(key) + query))).toEqual([
      400,
      { error: `unknown parameter ${given}; did you mean ${nearest}?`, key },
    ]);
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
  });

  test('is quoted in part only', async () => {
    const { text } = await send(app.url, 'POST', `${ratePath('k')}?${'x'.repeat(5000)}=1`);
    expect(text.length).toBeLessThan(200);
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
