import { randomUUID } from 'node:crypto';

import { PATIENT_STORE } from '../../support/both-limiters.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, approvedId, begin, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';

const DECISIONS = 'ratelimit_decisions_total';
const FAILED = 'ratelimit_failed_checks_total';

const redis = useRedis();
const start = useApps();

/** The counters of decisions and failures that are not 0. */
async function counted(url: string): Promise<Record<string, number>> {
  const all = await scrape(url);
  const values = Object.entries({ ...all.valuesOf(DECISIONS), ...all.valuesOf(FAILED) });
  return Object.fromEntries(values.filter(([, value]) => value !== 0));
}

function decided(outcome: string, reason: string): string {
  return `${DECISIONS}{decided_by="store",outcome="${outcome}",reason="${reason}"}`;
}

describe('GET /metrics', () => {
  let app: OwnApp;
  beforeEach(async () => {
    const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1', MAX_REQUESTS_IN_QUEUE: '1' };
    app = await start({ ...hour });
  });

  test('is text for Prometheus', async () => {
    const { headers } = await send(app.url, 'GET', '/metrics');

    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  test('counts each check once, by its outcome, and nothing else', async () => {
    const key = uniqueKey();
    const holder = await approve(app.url, key);
    await send(app.url, 'POST', ratePath(key));
    await send(app.url, 'GET', ratePath(key));
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    await send(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await send(app.url, 'POST', `${ratePath(key)}?canWait=perhaps`);
    await send(app.url, 'HEAD', ratePath(key));
    await send(app.url, 'DELETE', `${ratePath(key)}/${holder}`);
    approvedId(await waiting.answer);
    const disconnecting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    disconnecting.disconnect();
    await app.logged(({ status }) => status === 499);

    expect(await counted(app.url)).toEqual({
      [decided('approved', 'capacity')]: 1,
      [decided('approved', 'waited')]: 1,
      [decided('denied', 'limit_reached')]: 2,
      [decided('denied', 'queue_full')]: 1,
      [decided('withdrawn', 'client_disconnected')]: 1,
    });
    expect((await scrape(app.url)).value('ratelimit_queue_wait_seconds_count')).toBe(1);
  });

  test('has no keys, whatever they look like, and no series per key', async () => {
    const mark = uniqueKey();
    const names = async () => Object.keys((await scrape(app.url)).valuesOf('ratelimit_'));
    const before = await names();
    const keys = ['', '"', '\n', '\\', '"} 1\n', '{a="b"}', ' 1', '#', '__proto__', 'ü€😀'];
    for (const key of keys.map((part) => `${mark}${part}${mark}`)) {
      const requestId = await approve(app.url, key);
      await send(app.url, 'POST', ratePath(key));
      await send(app.url, 'DELETE', `${ratePath(key)}/${requestId}`);
      await send(app.url, 'POST', `${ratePath(key)}?canWait=${mark}`, { 'X-Correlation-ID': mark });
    }

    expect((await send(app.url, 'GET', '/metrics')).text).not.toContain(mark);
    expect(await names()).toEqual(before);
    expect((await counted(app.url))[decided('approved', 'capacity')]).toBe(keys.length);
  });
});

describe('checks of keys with an order', () => {
  const LANES = 'ratelimit_lane_decisions_total';
  const inLane = (lane: string, outcome: string, reason: string): string =>
    `${LANES}{lane="${lane}",outcome="${outcome}",reason="${reason}",rule="jobs"}`;

  test('are counted by the lanes of their rule, whether they name one or not', async () => {
    const key = uniqueKey();
    const lanes = [{ name: 'interactive' }, { name: 'batch' }];
    const limits = { max_requests_per_window: 1, window_millis: 3_600_000 };
    const rule = { key_pattern: key, name: 'jobs', queue: { lanes }, ...limits };
    const app = await start({}, { rules: [rule] });
    const path = ratePath(key);
    const holder = approvedId(await send(app.url, 'POST', `${path}?lane=interactive`));
    const waiting = begin(app.url, 'POST', `${path}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    await send(app.url, 'POST', `${path}?lane=interactive`);
    await send(app.url, 'DELETE', `${path}/${holder}`);
    approvedId(await waiting.answer);
    const all = await scrape(app.url);

    expect(all.valuesOf(LANES)).toEqual({
      [inLane('interactive', 'approved', 'capacity')]: 1,
      [inLane('interactive', 'denied', 'limit_reached')]: 1,
      [inLane('batch', 'approved', 'waited')]: 1,
    });
    expect(all.valuesOf('ratelimit_lane_queue_wait_seconds_count')).toEqual({
      'ratelimit_lane_queue_wait_seconds_count{lane="batch",rule="jobs"}': 1,
    });
  });

  test('are not counted by their groups', async () => {
    const [key, group] = [uniqueKey(), uniqueKey()];
    const app = await start({}, { rules: [{ key_pattern: key, queue: { fair: true } }] });

    approvedId(await send(app.url, 'POST', `${ratePath(key)}?group=${group}`));

    expect((await send(app.url, 'GET', '/metrics')).text).not.toContain(group);
    expect((await scrape(app.url)).valuesOf('ratelimit_lane_')).toEqual({});
  });
});

test('calls to Redis are counted by script, and the checks that went in them', async () => {
  const app = await start({ ...PATIENT_STORE, REDIS_URL: redis.url });
  const key = uniqueKey();
  const requestId = await approve(app.url, key);
  await approve(app.url, key);
  await send(app.url, 'DELETE', `${ratePath(key)}/${requestId}`);
  const all = await scrape(app.url);

  const calls = (script: string) => all.value('ratelimit_store_duration_seconds_count', { script });
  expect([calls('check'), calls('release'), calls('inspect')]).toEqual([2, 1, 0]);
  expect(all.value('ratelimit_check_batch_size_count')).toBe(2);
  expect(all.value('ratelimit_check_batch_size_sum')).toBe(2);
  expect(Object.values(all.valuesOf('ratelimit_store_errors_total'))).toEqual([0, 0, 0]);
  expect(all.value('ratelimit_store_breakers_open')).toBe(0);
});

test('a replica without requests is ready if it reaches Redis, and not if Redis is down', async () => {
  const readyWith = async (settings: Record<string, string>): Promise<number[]> => {
    const app = await start(settings);
    const all = await scrape(app.url);
    return ['ratelimit_ready', 'ratelimit_store_breakers_open'].map((name) => all.value(name));
  };
  const away = { REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200' };

  expect(await readyWith({ ...PATIENT_STORE, REDIS_URL: redis.url })).toEqual([1, 0]);
  expect(await readyWith(away)).toEqual([0, 0]);
  expect(await readyWith({ ...away, READY_DURING_OUTAGE: 'true' })).toEqual([1, 0]);
});

test('a check counts as failed while the store is down, and a release or a listing does not count', async () => {
  const app = await start({ REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '100' });
  const key = uniqueKey();
  const statuses = [
    await send(app.url, 'POST', ratePath(key)),
    await send(app.url, 'POST', `${ratePath(key)}?canWait=true`),
    await send(app.url, 'GET', `${ratePath(key)}?peek=true`),
    await send(app.url, 'GET', `${ratePath(key)}/${randomUUID()}`),
    await send(app.url, 'DELETE', `${ratePath(key)}/some-id`),
    await send(app.url, 'GET', `/debug/${key}`),
    await send(app.url, 'GET', '/debug'),
  ].map(({ status }) => status);
  const values = await counted(app.url);

  expect(statuses).toEqual(statuses.map(() => 503));
  expect(values).toEqual({ [`${FAILED}{reason="store_unavailable"}`]: 2 });
});
