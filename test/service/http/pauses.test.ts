import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startTestApp, type TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { begin, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const folder = useTemporaryFolder();

describe.each(bothLimiters(redis))('a pause (%s limiter)', (_name, settings) => {
  let app: TestApp;
  let key: string;
  beforeAll(async () => {
    app = await startTestApp({ ...settings(), MAX_REQUESTS: '2', WINDOW_MILLIS: '1000' });
  });
  afterAll(() => app.stop(0));
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (query = '') => send(app.url, 'POST', ratePath(key) + query);
  const pause = (query: string) => send(app.url, 'PUT', ratePath(key) + query);

  test('denies checks with its Retry-After, and shows in the state', async () => {
    expect(bodyOf(await pause('?pauseMillis=60000'))).toEqual([200, { key, pauseMillis: 60_000 }]);
    const { status, headers, json } = await check();
    expect([status, json()]).toEqual([429, { error: 'rate limit exceeded', key }]);
    expect(headers).toMatchObject({
      'retry-after': '60',
      ratelimit: expect.stringContaining(';r=0;t=60') as unknown,
    });
    const { PausedMillis = 0 } = await debugState(app.url, key);
    expect(PausedMillis).toBeGreaterThan(50_000);
  });

  test('of 0 ends it: a waiter is approved, and the state has no pause', async () => {
    await pause('?pauseMillis=60000');
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    expect(bodyOf(await pause('?pauseMillis=0'))).toEqual([200, { key, pauseMillis: 0 }]);
    expect((await waiting.answer).status).toBe(200);
    expect(await debugState(app.url, key)).not.toHaveProperty('PausedMillis');
  });

  test.each([
    ['', 'pauseMillis must be a whole number from 0 to 86400000'],
    ['?pauseMillis=86400001', 'pauseMillis must be a whole number from 0 to 86400000'],
    ['?pauseMillis=1&pauseMillis=2', 'pauseMillis must be given once'],
    ['?pausemillis=1', 'unknown parameter pausemillis; did you mean pauseMillis?'],
  ])('with "%s" is a 400, and changes nothing', async (query, error) => {
    expect(bodyOf(await pause(query))).toEqual([400, { error, key }]);
    expect((await check()).status).toBe(200);
  });
});

test('a pause needs the scope "configure", or a rule that allows it', async () => {
  const rules = join(folder, uniqueKey());
  await writeFile(
    rules,
    JSON.stringify({
      keys: [{ key_pattern: 'vendor-.*', key_pattern_is_regex: true, requests_can_pause: true }],
    }),
  );
  const worker = { name: 'worker', token: 'token-of-a-worker', scopes: ['check'] };
  const operator = {
    name: 'operator',
    token: 'token-of-an-operator',
    scopes: ['check', 'configure'],
  };
  const tokens = await tokenFile(folder, worker, operator);
  const app = await startTestApp({ AUTH_TOKENS_FILE: tokens, CONFIG_FILE: rules });
  try {
    const pause = (path: string, caller: { token: string }) =>
      send(app.url, 'PUT', `/rate/${path}?pauseMillis=1000`, bearer(caller));
    expect(bodyOf(await pause('other', worker))).toEqual([
      403,
      { error: 'the token lacks the scope configure', key: 'other' },
    ]);
    expect((await pause('other', operator)).status).toBe(200);
    expect((await pause('vendor-1', worker)).status).toBe(200);
  } finally {
    await app.stop(0);
  }
});

test('a pause of a key without a rule is rejected where checks of it are', async () => {
  const rules = join(folder, uniqueKey());
  await writeFile(rules, JSON.stringify({ keys: [{ key_pattern: 'known' }] }));
  const app = await startTestApp({ CONFIG_FILE: rules, UNKNOWN_KEYS: 'deny' });
  try {
    const pause = (key: string) => send(app.url, 'PUT', `/rate/${key}?pauseMillis=1000`);
    expect(bodyOf(await pause('other'))).toEqual([
      403,
      { error: 'no rule matches the key', key: 'other' },
    ]);
    expect((await pause('known')).status).toBe(200);
  } finally {
    await app.stop(0);
  }
});
