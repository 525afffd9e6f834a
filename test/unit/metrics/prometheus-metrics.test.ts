import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:net';

import { register as globalRegistry } from 'prom-client';

import type { Decision } from '../../../src/limiter/limiter.js';
import { withoutRules } from '../../../src/rules/rules.js';
import { parseSettings } from '../../../src/config/settings.js';
import { createMetrics, type Metrics } from '../../../src/metrics/prometheus-metrics.js';
import { parsePrometheusText, type Scrape } from '../../support/prometheus-text.js';
import { quotaOf } from '../../support/quota.js';

const NO_RULES = withoutRules(parseSettings({}));

const APPROVED: Decision = { outcome: 'approved', requestId: 'a' };

const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1) };

describe('metrics', () => {
  const DECISIONS = 'ratelimit_decisions_total';
  const FAILED = 'ratelimit_failed_checks_total';
  const ERRORS = 'ratelimit_store_errors_total';
  const PENDING = 'ratelimit_store_catch_up_pending';
  const NO_POLICY = NO_RULES.current.policyOf('any');
  const WAITING = { outcome: 'waiting', requestId: 'id' } as const;

  let metrics: Metrics;
  beforeEach(() => {
    metrics = createMetrics(() => 0, NO_RULES);
  });

  async function scrape(): Promise<Scrape> {
    return parsePrometheusText(await metrics.text());
  }

  /** The series of a metric that are not 0. */
  async function counted(name: string): Promise<Record<string, number>> {
    const values = Object.entries((await scrape()).valuesOf(name));
    return Object.fromEntries(values.filter(([, value]) => value !== 0));
  }

  /** A series of the metric for each value of its label, at zero. */
  function zeros(name: string, label: string, values: readonly string[]): Record<string, number> {
    return Object.fromEntries(values.map((value) => [`${name}{${label}="${value}"}`, 0]));
  }

  test('every possible series exists from the start, at zero', async () => {
    const decisions = ['store', 'allow', 'local'].flatMap((who) =>
      [
        ['approved', 'capacity'],
        ['approved', 'waited'],
        ['denied', 'limit_reached'],
        ['denied', 'paused'],
        ['denied', 'queue_full'],
        ['denied', 'queue_full_of_group'],
        ['denied', 'too_many_hits'],
        ['denied', 'turn_too_late'],
        ['denied', 'wait_expired'],
        ['shadowed', 'limit_reached'],
      ].map(
        ([outcome, reason]) =>
          `${DECISIONS}{decided_by="${who}",outcome="${outcome!}",reason="${reason!}"}`,
      ),
    );
    decisions.push(
      `${DECISIONS}{decided_by="store",outcome="withdrawn",reason="client_disconnected"}`,
      `${DECISIONS}{decided_by="store",outcome="waiting",reason="client_disconnected"}`,
      `${DECISIONS}{decided_by="store",outcome="waiting",reason="answer_due"}`,
    );
    const all = await scrape();

    expect(all.valuesOf(DECISIONS)).toEqual(
      Object.fromEntries(decisions.map((series) => [series, 0])),
    );
    expect(all.valuesOf(FAILED)).toEqual(
      zeros(FAILED, 'reason', [
        ...['store_unavailable', 'shutting_down', 'store_full', 'key_full', 'too_many_waiters'],
        ...['handed_over', 'too_many_waiters_of_caller'],
      ]),
    );
    expect(all.value('ratelimit_unclaimed_approvals_total')).toBe(0);
    expect(all.valuesOf(ERRORS)).toEqual(zeros(ERRORS, 'kind', ['not_run', 'unknown', 'fault']));
    expect(all.value('ratelimit_queue_wait_seconds_count')).toBe(0);
    expect(all.value('ratelimit_check_batch_size_count')).toBe(0);
    expect(all.value('ratelimit_store_breakers_open')).toBe(0);
    expect(all.valuesOf(PENDING)).toEqual(zeros(PENDING, 'kind', ['withdrawal', 'settle']));
    expect(all.value('ratelimit_waiting')).toBe(0);
    expect(all.value('ratelimit_ready')).toBe(1);
  });

  test('each script has a series of its calls from the start', async () => {
    const files = await readdir(new URL('../../../lua/', import.meta.url));
    const scripts = files.filter((file) => file.endsWith('.lua')).map((file) => file.slice(0, -4));

    const name = 'ratelimit_store_duration_seconds_count';
    expect((await scrape()).valuesOf(name)).toEqual(zeros(name, 'script', scripts));
  });

  test.each<[Decision, decidedBy: string, outcome: string, reason: string]>([
    [APPROVED, 'store', 'approved', 'capacity'],
    [{ ...APPROVED, waited: true }, 'store', 'approved', 'waited'],
    [{ ...APPROVED, outagePolicy: 'allow' }, 'allow', 'approved', 'capacity'],
    [{ ...APPROVED, outagePolicy: 'local' }, 'local', 'approved', 'capacity'],
    [DENIED, 'store', 'denied', 'limit_reached'],
    [{ ...DENIED, outagePolicy: 'local' }, 'local', 'denied', 'limit_reached'],
    [{ ...DENIED, reason: 'queue_full' }, 'store', 'denied', 'queue_full'],
    [{ ...DENIED, reason: 'queue_full_of_group' }, 'store', 'denied', 'queue_full_of_group'],
    [{ outcome: 'withdrawn' }, 'store', 'withdrawn', 'client_disconnected'],
    [{ ...WAITING, place: undefined }, 'store', 'waiting', 'client_disconnected'],
    [{ ...WAITING, place: { position: 1, waitMillis: 9 } }, 'store', 'waiting', 'answer_due'],
  ])('%j is counted once, with its own labels', async (decision, decidedBy, outcome, reason) => {
    const labels = `decided_by="${decidedBy}",outcome="${outcome}",reason="${reason}"`;
    metrics.decided(decision, 1, NO_POLICY);
    expect(await counted(DECISIONS)).toEqual({ [`${DECISIONS}{${labels}}`]: 1 });

    metrics.decided(decision, 1, NO_POLICY);
    expect(await counted(DECISIONS)).toEqual({ [`${DECISIONS}{${labels}}`]: 2 });
    expect(await counted(FAILED)).toEqual({});
  });

  test('approvals that nobody came for are counted', async () => {
    metrics.unclaimed(2);
    metrics.unclaimed(1);
    expect((await scrape()).value('ratelimit_unclaimed_approvals_total')).toBe(3);
  });

  describe('denials by limit', () => {
    const BY_LIMIT = 'ratelimit_limit_denials_total';
    const series = (limit: string, outcome = 'denied') =>
      `${BY_LIMIT}{limit="${limit}",outcome="${outcome}"}`;

    test('are counted by the name of the limit and the outcome', async () => {
      metrics.decided(DENIED, 1, NO_POLICY, 'hour');
      metrics.decided(DENIED, 1, NO_POLICY, 'hour');
      metrics.decided(DENIED, 1, { ...NO_POLICY, isShadow: true }, 'hour');
      metrics.decided(DENIED, 1, NO_POLICY, 'tenants');
      metrics.decided(DENIED, 1, NO_POLICY);
      metrics.decided(APPROVED, 1, NO_POLICY);
      expect(await counted(BY_LIMIT)).toEqual({
        [series('hour')]: 2,
        [series('hour', 'shadowed')]: 1,
        [series('tenants')]: 1,
      });
    });

    test('have at most a thousand names, and count later names together', async () => {
      for (let i = 0; i < 1003; i += 1) metrics.decided(DENIED, 1, NO_POLICY, `limit-${i}`);
      metrics.decided(DENIED, 1, NO_POLICY, 'limit-0');
      const all = await counted(BY_LIMIT);
      expect(Object.keys(all)).toHaveLength(1001);
      expect(all).toMatchObject({
        [series('limit-0')]: 2,
        [series('limit-999')]: 1,
        [series('other')]: 3,
      });
    });
  });

  test('the time in the queue counts only waiters that were approved', async () => {
    metrics.decided({ ...APPROVED, waited: true }, 0.004, NO_POLICY);
    metrics.decided({ ...APPROVED, waited: true }, 500, NO_POLICY);
    metrics.decided(APPROVED, 7, NO_POLICY);
    metrics.decided(DENIED, 7, NO_POLICY);
    metrics.decided({ outcome: 'withdrawn' }, 7, NO_POLICY);
    const all = await scrape();

    const bucket = (le: string) => all.value('ratelimit_queue_wait_seconds_bucket', { le });
    expect([bucket('0.005'), bucket('300'), bucket('600'), bucket('+Inf')]).toEqual([1, 1, 2, 2]);
    expect(all.value('ratelimit_queue_wait_seconds_sum')).toBeCloseTo(500.004, 9);
  });

  test('a call of a script is measured, and a failed call is also an error of its kind', async () => {
    metrics.called('check', 0.002, 'ok', { size: 1 });
    metrics.called('check', 0.5, 'unknown', { size: 1 });
    metrics.called('settle', 0.001, 'fault', { size: 1 });
    metrics.called('settle', 0.001, 'not_run', { size: 1 });
    const all = await scrape();

    const calls = (script: string) =>
      all.value('ratelimit_store_duration_seconds_count', { script });
    expect([calls('check'), calls('settle'), calls('release')]).toEqual([2, 2, 0]);
    expect(all.value('ratelimit_store_duration_seconds_sum', { script: 'check' })).toBeCloseTo(
      0.502,
    );
    expect(await counted(ERRORS)).toEqual({
      [`${ERRORS}{kind="unknown"}`]: 1,
      [`${ERRORS}{kind="fault"}`]: 1,
      [`${ERRORS}{kind="not_run"}`]: 1,
    });
  });

  test('the work left after an outage has the last value reported for each kind', async () => {
    metrics.catchingUp('withdrawal', 19_000);
    metrics.catchingUp('settle', 3);
    metrics.catchingUp('settle', 2);
    expect((await scrape()).valuesOf(PENDING)).toEqual({
      [`${PENDING}{kind="withdrawal"}`]: 19_000,
      [`${PENDING}{kind="settle"}`]: 2,
    });
  });

  test('the sizes of batches and the open breakers have the values that were reported', async () => {
    metrics.batched(1);
    metrics.batched(100);
    metrics.breakersOpen(2);
    const all = await scrape();

    expect(all.value('ratelimit_check_batch_size_bucket', { le: '1' })).toBe(1);
    expect(all.value('ratelimit_check_batch_size_bucket', { le: '100' })).toBe(2);
    expect(all.value('ratelimit_check_batch_size_sum')).toBe(101);
    expect(all.value('ratelimit_store_breakers_open')).toBe(2);
    metrics.breakersOpen(0);
    expect((await scrape()).value('ratelimit_store_breakers_open')).toBe(0);
  });

  test('the process itself is measured: event loop, memory, handles, garbage collection', async () => {
    // A handle of its own: the process of the tests may have none.
    const listening = createServer().listen(0, '127.0.0.1');
    await once(listening, 'listening');
    const all = await scrape();
    listening.close();

    expect(all.value('process_resident_memory_bytes')).toBeGreaterThan(0);
    expect(all.value('nodejs_active_handles_total')).toBeGreaterThan(0);
    expect(all.valuesOf('nodejs_eventloop_lag_p99_seconds')).not.toEqual({});
    expect(await metrics.text()).toContain('# TYPE nodejs_gc_duration_seconds histogram');
  });

  test('metrics belong to one service, not to the whole process', async () => {
    const other = createMetrics(() => 0, NO_RULES);
    other.decided(APPROVED, 1, NO_POLICY);

    expect(await counted(DECISIONS)).toEqual({});
    expect(globalRegistry.getMetricsAsArray()).toEqual([]);
  });
});

describe('metrics of lanes', () => {
  const BY_LANE = 'ratelimit_lane_decisions_total';
  const WAITS = 'ratelimit_lane_queue_wait_seconds';
  const POLICY = { isShadow: false, ruleName: 'llm' };
  const WAITED: Decision = { ...APPROVED, waited: true };

  let metrics: Metrics;
  beforeEach(() => {
    metrics = createMetrics(() => 0, NO_RULES);
  });

  const inLane = (lane: string, decision: Decision, seconds = 1, policy = POLICY): void => {
    metrics.decided(decision, seconds, policy, undefined, lane);
  };
  const scrape = async (): Promise<Scrape> => parsePrometheusText(await metrics.text());
  const series = (rule: string, lane: string, outcome: string, reason: string): string =>
    `${BY_LANE}{lane="${lane}",outcome="${outcome}",reason="${reason}",rule="${rule}"}`;

  test.each<[Decision, isShadow: boolean, outcome: string, reason: string]>([
    [WAITED, true, 'approved', 'waited'],
    [DENIED, false, 'denied', 'limit_reached'],
    [{ ...DENIED, reason: 'queue_full' }, true, 'shadowed', 'limit_reached'],
    [
      { outcome: 'waiting', requestId: 'a', place: { position: 1, waitMillis: 9 } },
      false,
      'waiting',
      'answer_due',
    ],
  ])('%j in a lane, shadow: %s, counts by rule and lane', async (decision, isShadow, ...labels) => {
    inLane('batch', decision, 1, { ...POLICY, isShadow });
    inLane('batch', decision, 1, { ...POLICY, isShadow });

    expect((await scrape()).valuesOf(BY_LANE)).toEqual({ [series('llm', 'batch', ...labels)]: 2 });
  });

  test('a lane of a rule without a name counts for the rule default', async () => {
    metrics.decided(APPROVED, 1, { isShadow: false, ruleName: undefined }, undefined, 'batch');

    expect((await scrape()).valuesOf(BY_LANE)).toEqual({
      [series('default', 'batch', 'approved', 'capacity')]: 1,
    });
  });

  test('the time in a lane counts only waiters that were approved', async () => {
    inLane('interactive', WAITED, 0.5);
    inLane('batch', WAITED, 20);
    inLane('batch', WAITED, 40);
    inLane('batch', APPROVED, 7);
    inLane('batch', DENIED, 7);
    const all = await scrape();

    const values = (lane: string) =>
      ['count', 'sum'].map((what) => all.value(`${WAITS}_${what}`, { rule: 'llm', lane }));
    expect([values('interactive'), values('batch')]).toEqual([
      [1, 0.5],
      [2, 60],
    ]);
  });

  test('a check without a lane has no series of lanes', async () => {
    metrics.decided(WAITED, 1, POLICY);
    metrics.decided(DENIED, 1, POLICY, 'hour');
    const all = await scrape();

    expect([all.valuesOf(BY_LANE), all.valuesOf(`${WAITS}_count`)]).toEqual([{}, {}]);
  });

  test('at most 500 lanes have series of their own, and later ones count together', async () => {
    for (let i = 0; i < 503; i += 1)
      inLane('batch', WAITED, 1, { ...POLICY, ruleName: `rule-${i}` });
    inLane('batch', WAITED, 1, { ...POLICY, ruleName: 'rule-0' });
    const all = await scrape();

    expect(Object.keys(all.valuesOf(BY_LANE))).toHaveLength(501);
    expect(Object.keys(all.valuesOf(`${WAITS}_count`))).toHaveLength(501);
    expect(all.valuesOf(BY_LANE)).toMatchObject({
      [series('rule-0', 'batch', 'approved', 'waited')]: 2,
      [series('rule-499', 'batch', 'approved', 'waited')]: 1,
      [series('other', 'other', 'approved', 'waited')]: 3,
    });
  });
});
