import { bothLimiters } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { approvedId, begin, bodyOf, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const HOUR_MILLIS = 3_600_000;
const HOUR_SECONDS = 3600;

describe.each(bothLimiters(redis))('limits of each group, %s', (_, settings) => {
  const app = useApp(() => ({ ...settings(), MAX_GROUPS_PER_KEY: '3' }), {
    rules: [
      {
        key_pattern: 'vendor.*',
        key_pattern_is_regex: true,
        window_millis: 60_000,
        max_requests_per_window: 100,
        queue: {
          fair: true,
          lanes: [{ name: 'users', head_start_millis: 60_000 }, { name: 'jobs' }],
        },
        limits: [
          {
            ...{ name: 'tenant', per: 'group', window_millis: HOUR_MILLIS },
            ...{ max_requests_per_window: 1, maxima: { gold: 2 } },
          },
          { name: 'tokens', per: 'group', window_millis: HOUR_MILLIS, max_hits_per_window: 10 },
        ],
      },
    ],
  });
  const begun: { disconnect: () => void }[] = [];
  afterEach(() => {
    for (const request of begun.splice(0)) request.disconnect();
  });

  let key: string;
  beforeEach(() => {
    key = `vendor${uniqueKey()}`;
  });
  const ask = (method: string, query = '', more = '') =>
    send(app.url, method, `${ratePath(key)}${more}${query && `?${query}`}`);
  const check = (query: string) => ask('POST', query);
  const wait = async (query: string, waiting: number) => {
    const request = begin(app.url, 'POST', `${ratePath(key)}?canWait=true&${query}`);
    begun.push(request);
    await untilWaiting(app.url, key, waiting);
    return request;
  };
  const statuses = async (...queries: readonly string[]): Promise<number[]> => {
    const all: number[] = [];
    for (const query of queries) all.push((await check(query)).status);
    return all;
  };

  test('deny a check of a full group, name the limit and when it has room, and leave other groups alone', async () => {
    expect(await statuses('group=a', 'group=gold', 'group=gold', 'group=b')).toEqual([
      200, 200, 200, 200,
    ]);
    const { status, headers, json } = await check('group=a');
    expect([status, json()]).toMatchObject([429, { limit: 'tenant' }]);
    expect(Number(headers['retry-after'])).toBeGreaterThan(HOUR_SECONDS - 60);
    expect(headers.ratelimit).toMatch(
      /^"default";r=96;t=\d+, "tenant";r=0;t=\d+, "tokens";r=9;t=\d+$/,
    );
  });

  test('reject a check with more hits than a group may ever have', async () => {
    expect((await check('group=a&hits=11')).status).toBe(400);
    expect((await check('group=a&hits=10')).status).toBe(200);
  });

  test('stop the group that is full and nobody else, until its approval is released', async () => {
    const first = approvedId(await check('group=a'));
    const requestId = 'bd3b8a9c-3c2c-4d3c-8a5e-3f0f2b1f7a11';
    const stopped = await wait(`group=a&requestId=${requestId}&keepMillis=60000`, 1);
    expect((await check('group=b')).status).toBe(200);
    expect(bodyOf(await ask('GET', '', `/${requestId}`))).toEqual([
      200,
      expect.objectContaining({ status: 'waiting', position: 1, stoppedBy: 'tenant' }),
    ]);
    const { Queue, Groups, Limits } = await debugState(app.url, key);
    expect(Queue?.Lists).toMatchObject([{ Group: 'a', StoppedBy: 'tenant' }]);
    expect(Groups).toEqual([
      { Group: 'a', NumApproved: { tenant: 1, tokens: 1 } },
      { Group: 'b', NumApproved: { tenant: 1, tokens: 1 } },
    ]);
    expect(Limits).toMatchObject([{ Name: 'tenant', Per: 'group' }, { Name: 'tokens' }]);
    await ask('DELETE', '', `/${first}`);
    expect((await stopped.answer).status).toBe(200);
  });

  test('serve the lanes inside a group by their head starts', async () => {
    const first = approvedId(await check('group=a'));
    const job = await wait('group=a&lane=jobs', 1);
    const user = await wait('group=a&lane=users', 2);
    await ask('DELETE', '', `/${first}`);
    const answer = await user.answer;
    expect(answer.status).toBe(200);
    await ask('DELETE', '', `/${approvedId(answer)}`);
    expect((await job.answer).status).toBe(200);
  });

  test('a pause of one group stops it alone', async () => {
    const pausedAt = performance.now();
    expect(bodyOf(await ask('PUT', 'pauseMillis=600000&group=a'))).toEqual([
      200,
      { key, pauseMillis: 600_000 },
    ]);
    const { status, headers } = await check('group=a');
    const leftAtLeast = 600 - (performance.now() - pausedAt) / 1000;
    expect(status).toBe(429);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(600);
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(Math.ceil(leftAtLeast));
    expect(await statuses('group=b', 'hits=1')).toEqual([200, 200]);
    await wait('group=b', 1);
    const paused = await wait('group=a', 2);
    expect((await debugState(app.url, key)).Queue?.Lists).toMatchObject([
      { Group: 'b', StoppedBy: 'tenant' },
      { Group: 'a', StoppedBy: 'paused' },
    ]);
    await ask('PUT', 'pauseMillis=0&group=a');
    expect((await paused.answer).status).toBe(200);
  });

  test('a pause of the group "" stops the checks that name none', async () => {
    await ask('PUT', 'pauseMillis=600000&group=');
    expect(await statuses('hits=1', 'group=a')).toEqual([429, 200]);
  });

  test('a report for the limit of one group fills it alone', async () => {
    expect((await ask('PUT', 'remaining=0&limit=tenant&group=gold')).status).toBe(200);
    expect(await statuses('group=gold', 'group=a')).toEqual([429, 200]);
    for (const query of ['remaining=0&limit=tenants&group=gold', 'remaining=0&limit=tenants']) {
      expect((await ask('PUT', query)).json()).toMatchObject({
        error: 'limit must be one of the limits of the key: default, tenant, tokens',
      });
    }
  });

  test('of more groups than MAX_GROUPS_PER_KEY are a 503, until nothing counts in one', async () => {
    const first = approvedId(await check('group=a'));
    expect(await statuses('group=b', 'group=c')).toEqual([200, 200]);
    for (const full of [
      await check('group=d'),
      await ask('PUT', 'pauseMillis=600000&group=d'),
      await ask('PUT', 'remaining=0&limit=tenant&group=d'),
    ]) {
      expect([full.status, full.text]).toEqual([503, expect.stringContaining('"KEY_FULL"')]);
    }
    await ask('DELETE', '', `/${first}`);
    expect((await check('group=d')).status).toBe(200);
  });
});
