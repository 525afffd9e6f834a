import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startTestApp, type TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { begin, type PendingRequest, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const folder = useTemporaryFolder();

describe.each(bothLimiters(redis))('rules (%s limiter)', (_name, settings) => {
  let app: TestApp;
  /** The start of the keys of this test, so that tests do not share keys. */
  let prefix: string;
  let rulesFile: string;
  beforeEach(() => {
    prefix = uniqueKey();
  });
  afterEach(() => app.stop(0));

  async function startWith(
    rules: readonly object[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    rulesFile = join(folder, uniqueKey());
    await writeFile(rulesFile, JSON.stringify({ keys: rules }));
    app = await startTestApp({
      ...settings(),
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      CONFIG_FILE: rulesFile,
      ...environment,
    });
  }

  const statusOf = async (key: string, query = ''): Promise<number> =>
    (await send(app.url, 'POST', ratePath(key) + query)).status;

  test('each key has the limits of the rules that match it, and other keys have the defaults', async () => {
    await startWith([
      {
        key_pattern: `${prefix}-a.*`,
        key_pattern_is_regex: true,
        max_requests_per_window: 3,
        window_millis: 7_200_000,
      },
      { key_pattern: `${prefix}-ab`, max_requests_per_window: 2, max_requests_in_queue: 5 },
    ]);
    const expected = [
      ['a', 7_200_000, 3, 400],
      ['ab', 7_200_000, 2, 5],
      ['b', 3_600_000, 1, 400],
    ] as const;
    for (const [name, WindowMillis, MaxRequestsPerWindow, MaxRequestsInQueue] of expected) {
      const key = `${prefix}-${name}`;
      for (let i = 0; i < MaxRequestsPerWindow; i += 1) expect(await statusOf(key)).toBe(200);
      expect(await statusOf(key)).toBe(429);
      expect(await debugState(app.url, key)).toMatchObject({
        Config: { WindowMillis, MaxRequestsPerWindow, MaxRequestsInQueue },
      });
    }
  });

  test('checks that share a Redis call are each decided by the limits of their key', async () => {
    const rules = Array.from({ length: 12 }, (_, i) => ({
      key_pattern: `${prefix}-${i}`,
      max_requests_per_window: i,
    }));
    await startWith(rules);
    const approved = await Promise.all(
      rules.map(async ({ key_pattern: key }) => {
        const statuses = await Promise.all(Array.from({ length: 15 }, () => statusOf(key)));
        return statuses.filter((status) => status === 200).length;
      }),
    );
    expect(approved).toEqual(rules.map((_, i) => i));
  });

  test('a maximum of 0 approves no check, and lets none wait', async () => {
    await startWith([{ key_pattern: prefix, max_requests_per_window: 0 }]);
    expect(await statusOf(prefix)).toBe(429);
    expect(await statusOf(prefix, '?canWait=true')).toBe(429);
  });

  test('rules say whether requests may set a maximum, and how high', async () => {
    await startWith([
      { key_pattern: `${prefix}-no`, requests_can_set_rate: false },
      { key_pattern: `${prefix}-low`, max_requests_ceiling: 5, max_requests_in_queue_ceiling: 6 },
    ]);
    const answerTo = async (key: string, query: string): Promise<unknown> =>
      (await send(app.url, 'POST', `${ratePath(key)}?${query}`)).json();
    expect(await answerTo(`${prefix}-no`, 'maxRequests=1')).toEqual({
      error: 'overriding maxRequests is disabled',
      key: `${prefix}-no`,
    });
    expect(await statusOf(`${prefix}-no`, '?maxRequestsInQueue=1')).toBe(200);
    expect(await answerTo(`${prefix}-low`, 'maxRequests=6')).toEqual({
      error: 'maxRequests must be at most 5 for this key',
      key: `${prefix}-low`,
    });
    expect(await answerTo(`${prefix}-low`, 'maxRequestsInQueue=7')).toEqual({
      error: 'maxRequestsInQueue must be at most 6 for this key',
      key: `${prefix}-low`,
    });
    expect(await statusOf(`${prefix}-low`, '?maxRequests=5&maxRequestsInQueue=6')).toBe(200);
  });

  test('a maximum that a request has set no longer applies once the rules forbid it', async () => {
    await startWith([{ key_pattern: prefix, max_requests_per_window: 1 }]);
    expect(await statusOf(prefix, '?maxRequests=3&maxRequestsInQueue=9')).toBe(200);
    const forbidding = { key_pattern: prefix, max_requests_per_window: 1 };
    await writeFile(
      rulesFile,
      JSON.stringify({ keys: [{ ...forbidding, requests_can_set_rate: false }] }),
    );
    await app.reloadRules();
    expect(await statusOf(prefix)).toBe(429);
    expect(await debugState(app.url, prefix)).toMatchObject({
      Config: { MaxRequestsPerWindow: 1, MaxRequestsInQueue: 9 },
    });
  });

  test('a key that no rule matches can be rejected, and is not created', async () => {
    await startWith([{ key_pattern: `${prefix}-known` }], { UNKNOWN_KEYS: 'deny' });
    expect(await statusOf(`${prefix}-known`)).toBe(200);
    const answer = await send(app.url, 'POST', ratePath(`${prefix}-other`));
    expect([answer.status, answer.json()]).toEqual([
      403,
      { error: 'no rule matches the key', key: `${prefix}-other` },
    ]);
    expect(await debugState(app.url, `${prefix}-other`)).toMatchObject({ Found: false });
  });

  describe('a shadow rule', () => {
    test('lets every check pass, and says what it would have decided', async () => {
      await startWith([{ key_pattern: prefix, name: 'trial', shadow: true }], { LOG_4XX: 'true' });
      expect(await statusOf(prefix)).toBe(200);
      const answer = await send(app.url, 'POST', `${ratePath(prefix)}?canWait=true`);
      expect(answer.status).toBe(200);
      expect(answer.headers['x-sluice-shadow']).toBe('denied');
      expect(await debugState(app.url, prefix)).toMatchObject({
        NumApprovedThisWindow: 1,
        NumDeniedThisWindow: 1,
        NumWaiting: 0,
      });
      const { request_id: id } = answer.json() as { request_id: string };
      expect((await send(app.url, 'DELETE', `${ratePath(prefix)}/${id}`)).status).toBe(404);
      const metrics = await scrape(app.url);
      expect(metrics.valuesOf('ratelimit_rule_decisions_total')).toEqual({
        'ratelimit_rule_decisions_total{outcome="approved",rule="trial"}': 1,
        'ratelimit_rule_decisions_total{outcome="shadowed",rule="trial"}': 1,
      });
      expect(metrics.valuesOf('ratelimit_decisions_total')).toMatchObject({
        'ratelimit_decisions_total{decided_by="store",outcome="shadowed",reason="limit_reached"}': 1,
        'ratelimit_decisions_total{decided_by="store",outcome="denied",reason="limit_reached"}': 0,
      });
      await app.logged(({ msg, key }) => key === prefix && String(msg).includes('shadow'));
    });
  });

  test('the digest of the rules is at /debug and in the metrics', async () => {
    await startWith([{ key_pattern: 'a' }, { key_pattern: 'b' }]);
    const { Rules } = (await send(app.url, 'GET', '/debug')).json() as {
      Rules: { Digest: string; Count: number };
    };
    expect(Rules.Digest).toMatch(/^[0-9a-f]{12}$/);
    expect(Rules.Count).toBe(2);
    expect((await scrape(app.url)).valuesOf('ratelimit_rules')).toEqual({
      [`ratelimit_rules{digest="${Rules.Digest}"}`]: 2,
      ratelimit_rules_stale: 0,
    });
  });

  describe('a limit that waiters wait for', () => {
    const rule = (...limits: object[]): object => ({
      key_pattern: prefix,
      max_requests_per_window: 5,
      limits,
    });
    const hour = (maximum: number): object => ({
      name: 'hour',
      max_requests_per_window: maximum,
      window_millis: 3_600_000,
    });
    const startWaiting = async (waitingBefore = 0): Promise<PendingRequest> => {
      const waiting = begin(app.url, 'POST', `${ratePath(prefix)}?canWait=true`);
      await until(async () => {
        const { NumWaiting } = (await debugState(app.url, prefix)) as { NumWaiting: number };
        return NumWaiting === waitingBefore + 1;
      });
      return waiting;
    };
    const setRules = async (...rules: object[]): Promise<void> => {
      await writeFile(rulesFile, JSON.stringify({ keys: rules }));
      await app.reloadRules();
    };

    test('lets them go when the rules remove it, without another check', async () => {
      await startWith([rule(hour(1))]);
      expect(await statusOf(prefix)).toBe(200);
      const waiting = await startWaiting();
      await setRules(rule());
      expect((await waiting.answer).status).toBe(200);
    });

    test('lets as many go as fit when the rules raise it or add another, and loses nobody', async () => {
      await startWith([rule(hour(1))]);
      expect(await statusOf(prefix)).toBe(200);
      const first = await startWaiting();
      const second = await startWaiting(1);
      await setRules(rule(hour(2)));
      expect((await first.answer).status).toBe(200);
      await setRules(
        rule(hour(9), { name: 'moment', max_requests_per_window: 1, window_millis: 60_000 }),
      );
      expect((await second.answer).status).toBe(200);
      const denied = await send(app.url, 'POST', ratePath(prefix));
      expect([denied.status, denied.json()]).toEqual([
        429,
        { error: 'rate limit exceeded', key: prefix, limit: 'moment' },
      ]);
    });
  });

  test('a waiter of one key is served at the end of its own window', async () => {
    await startWith([{ key_pattern: prefix, window_millis: 200 }]);
    expect(await statusOf(prefix)).toBe(200);
    const waiting = begin(app.url, 'POST', `${ratePath(prefix)}?canWait=true`);
    expect((await waiting.answer).status).toBe(200);
  });
});
