import type { Decision } from '../../../src/limiter/limiter.js';
import type { Metrics } from '../../../src/metrics/metrics.js';
import { createMetrics } from '../../../src/metrics/prometheus-metrics.js';
import { withoutRules } from '../../../src/rules/rules.js';
import { parseSettings } from '../../../src/config/settings.js';
import { parsePrometheusText, type Scrape } from '../../support/prometheus-text.js';
import { quotaOf } from '../../support/quota.js';

const BY_LANE = 'ratelimit_lane_decisions_total';
const WAITS = 'ratelimit_lane_queue_wait_seconds';
const NO_RULES = withoutRules(parseSettings({}));
const POLICY = { isShadow: false, ruleName: 'llm' };
const APPROVED: Decision = { outcome: 'approved', requestId: 'a' };
const WAITED: Decision = { ...APPROVED, waited: true };
const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1) };

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
  [APPROVED, false, 'approved', 'capacity'],
  [WAITED, true, 'approved', 'waited'],
  [DENIED, false, 'denied', 'limit_reached'],
  [{ ...DENIED, reason: 'wait_expired' }, false, 'denied', 'wait_expired'],
  [{ ...DENIED, reason: 'queue_full' }, true, 'shadowed', 'limit_reached'],
  [{ outcome: 'withdrawn' }, false, 'withdrawn', 'client_disconnected'],
  [
    { outcome: 'waiting', requestId: 'a', place: undefined },
    false,
    'waiting',
    'client_disconnected',
  ],
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
  for (let i = 0; i < 503; i += 1) inLane('batch', WAITED, 1, { ...POLICY, ruleName: `rule-${i}` });
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
