import { jest } from '@jest/globals';

import { RuleSet } from '../../../src/rules/rule-set.js';
import type { Environment } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { type OwnApp, useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

describe('rules', () => {
  let app: OwnApp;
  /** The start of the keys of this test, so that tests do not share keys. */
  let prefix: string;
  beforeEach(() => {
    prefix = uniqueKey();
  });

  async function startWith(rules: readonly object[], environment: Environment = {}) {
    const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
    app = await start({ ...hour, ...environment }, { rules });
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

  test('a default of a check sets the maximum of keys for which no rule does', async () => {
    const [ruled, other] = [`${prefix}-ruled`, `${prefix}-other`];
    await startWith([
      { key_pattern: prefix + '.*', key_pattern_is_regex: true, max_requests_in_queue: 9 },
      { key_pattern: ruled, max_requests_per_window: 3, requests_can_set_rate: false },
    ]);
    const maximumAfter = async (key: string, query: string) => {
      expect(await statusOf(key, query)).toBe(200);
      const { Config } = await debugState(app.url, key);
      return Config!.MaxRequestsPerWindow;
    };

    expect(await maximumAfter(ruled, '?defaultMaxRequests=7')).toBe(3);
    expect(await maximumAfter(other, '?defaultMaxRequests=7')).toBe(7);
    expect(await maximumAfter(other, '?defaultMaxRequests=7&maxRequests=8')).toBe(8);
    expect(await statusOf(ruled, '?defaultMaxRequests=7&maxRequests=8')).toBe(403);
  });

  test('a maximum that a request has set no longer applies once the rules forbid it', async () => {
    const rule = { key_pattern: prefix, max_requests_per_window: 1 };
    await startWith([rule]);
    expect(await statusOf(prefix, '?maxRequests=3&maxRequestsInQueue=9')).toBe(200);
    await app.setRules({ ...rule, requests_can_set_rate: false });
    expect(await statusOf(prefix)).toBe(429);
    expect(await debugState(app.url, prefix)).toMatchObject({
      Config: { MaxRequestsPerWindow: 1, MaxRequestsInQueue: 9 },
    });
  });

  test('a shadow rule lets every check pass, and says what it would have decided', async () => {
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
});

describe('costly rules', () => {
  /** Expressions without a text that could rule out a key, so that each costs an automaton. */
  const COSTLY = Array.from({ length: 40 }, (_, i) => `(?i).*:svc${i}:.*`);
  const OWNER = { name: 'owner', token: 'token-for-all-keys', scopes: ['check'] };
  const TEAM = {
    name: 'team',
    token: 'token-for-keys-of-the-team',
    scopes: ['check'],
    key_patterns: COSTLY,
  };
  const WATCHER = {
    name: 'watcher',
    token: 'token-for-the-numbers-of-the-team',
    scopes: ['debug'],
    key_patterns: COSTLY,
  };
  /** Fewest single checks that are answered, one after the other, while 1000 new keys are matched. */
  const ANSWERED_MEANWHILE = 20;

  const app = useApp(() => ({ MAX_REQUESTS: '100000', WINDOW_MILLIS: '3600000' }), {
    rules: COSTLY.map((pattern) => ({ key_pattern: pattern, key_pattern_is_regex: true })),
    tokens: [OWNER, TEAM, WATCHER],
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const newElements = (): { key: string }[] =>
    Array.from({ length: 1000 }, (_, i) => ({
      key: `${uniqueKey()}${i}`.padEnd(500, `;svc${i % 40}`),
    }));

  test.each([
    ['decided by costly rules', OWNER, 200],
    ["rejected by the costly key patterns of the caller's token", TEAM, 403],
  ])('single checks are answered while a bulk request is %s', async (_how, caller, status) => {
    const results = await amongChecks(() =>
      checkMany(app.url, newElements(), { ...bearer(caller) }),
    );

    expect(new Set(results.map((result) => result.status))).toEqual(new Set([status]));
  });

  test.each(['/debug', '/ui/data'])(
    "single checks are answered while %s matches all keys with the key patterns of the caller's token",
    async (path) => {
      await checkMany(app.url, newElements(), { ...bearer(OWNER) });
      const answer = await amongChecks(() => send(app.url, 'GET', path, bearer(WATCHER)));

      expect(answer.status).toBe(200);
    },
  );

  /** The result of a call, during which single checks have to be answered. */
  async function amongChecks<T>(call: () => Promise<T>): Promise<T> {
    const key = uniqueKey();
    const progress = { isAnswered: false, answeredMeanwhile: 0 };
    const result = call().finally(() => {
      progress.isAnswered = true;
    });
    while (!progress.isAnswered) {
      expect((await send(app.url, 'POST', ratePath(key), bearer(OWNER))).status).toBe(200);
      progress.answeredMeanwhile += 1;
    }
    expect(progress.answeredMeanwhile).toBeGreaterThan(ANSWERED_MEANWHILE);
    return result;
  }

  test('rules are not matched for a key that the caller may not use', async () => {
    const matching = jest.spyOn(RuleSet.prototype, 'matching');
    const [first, ...others] = newElements();
    const path = `${ratePath(first?.key ?? '')}?maxRequests=5`;
    expect((await send(app.url, 'POST', path, bearer(TEAM))).status).toBe(403);
    await checkMany(app.url, others.slice(0, 10), { ...bearer(TEAM) });
    expect(matching).not.toHaveBeenCalled();
  });
});
