import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { stringify } from 'yaml';

import { provided } from '../../support/provided.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { ROOT } from '../repository-files.js';
import { alerts, panelQueries, RULES_FILE } from './shipped-queries.js';

type Values = Readonly<Record<string, string>>;

/** The series of a busy replica without faults, one value a minute. Counters are written `0+10x40`. */
const SOUND: Values = {
  ratelimit_ready: '1x40',
  ratelimit_waiting: '7000x40',
  'ratelimit_rules{digest="a"}': '3x40',
  ratelimit_rules_stale: '0x40',
  ratelimit_tokens_stale: '0x40',
  ratelimit_tokens_gone: '0x40',
  ratelimit_store_breakers_open: '0x40',
  nodejs_eventloop_lag_p99_seconds: '0.05x40',
  'ratelimit_decisions_total{outcome="approved",reason="capacity",decided_by="store"}': '0+1000x40',
  'ratelimit_decisions_total{outcome="denied",reason="queue_full",decided_by="store"}': '0x40',
  'ratelimit_decisions_total{outcome="denied",reason="queue_full_of_group",decided_by="store"}':
    '0x40',
  'ratelimit_decisions_total{outcome="approved",reason="capacity",decided_by="local"}': '0x40',
  'ratelimit_rule_decisions_total{rule="r",outcome="approved"}': '0+60x40',
  'ratelimit_rule_decisions_total{rule="r",outcome="denied"}': '0+40x40',
  'ratelimit_failed_checks_total{reason="store_unavailable"}': '0+5x40',
  'ratelimit_failed_checks_total{reason="shutting_down"}': '0+100x40',
  'ratelimit_failed_checks_total{reason="store_full"}': '0x40',
  'ratelimit_failed_checks_total{reason="key_full"}': '0x40',
  'ratelimit_failed_checks_total{reason="too_many_waiters"}': '0x40',
  'ratelimit_store_errors_total{kind="fault"}': '0x40',
  'ratelimit_store_errors_total{kind="not_run"}': '0+5x40',
  'ratelimit_auth_rejections_total{reason="token_unknown"}': '0+30x40',
  'ratelimit_dropped_connections_total{reason="too_many_deferred"}': '0x40',
  'ratelimit_store_duration_seconds_bucket{script="check",le="0.05"}': '0+995x40',
  'ratelimit_store_duration_seconds_bucket{script="check",le="0.1"}': '0+1000x40',
  'ratelimit_store_duration_seconds_bucket{script="check",le="0.25"}': '0+1000x40',
  'ratelimit_store_duration_seconds_bucket{script="check",le="+Inf"}': '0+1000x40',
};

/** By alert: the series that differ if it fires. */
const FAULTS: Readonly<Record<string, Values>> = {
  SluiceGone: { ratelimit_ready: '1x10 _x30' },
  SluiceStoreDown: { ratelimit_store_breakers_open: '1x40' },
  SluiceStoreFull: { 'ratelimit_failed_checks_total{reason="store_full"}': '0+1x40' },
  SluiceStoreFaults: { 'ratelimit_store_errors_total{kind="fault"}': '0+1x40' },
  SluiceTokensGone: { ratelimit_tokens_gone: '1x40' },
  SluiceChecksFail: { 'ratelimit_failed_checks_total{reason="store_unavailable"}': '0+20x40' },
  SluiceNotReady: { ratelimit_ready: '0x40' },
  SluiceDecidesByPolicy: {
    'ratelimit_decisions_total{outcome="approved",reason="capacity",decided_by="local"}': '0+1x40',
  },
  SluiceTokensStale: { ratelimit_tokens_stale: '1x40' },
  SluiceRulesStale: { ratelimit_rules_stale: '1x40' },
  SluiceRulesDiffer: { 'ratelimit_rules{digest="b"}': '3x40' },
  SluiceStoreSlow: {
    'ratelimit_store_duration_seconds_bucket{script="check",le="0.05"}': '0+970x40',
    'ratelimit_store_duration_seconds_bucket{script="check",le="0.1"}': '0+980x40',
  },
  SluiceManyWaiters: { ratelimit_waiting: '9000x40' },
  SluiceTurnsWaitersAway: {
    'ratelimit_failed_checks_total{reason="too_many_waiters"}': '0+1x40',
  },
  SluiceKeyFull: { 'ratelimit_failed_checks_total{reason="key_full"}': '0+1x40' },
  SluiceDropsConnections: {
    'ratelimit_dropped_connections_total{reason="too_many_deferred"}': '0+1x40',
  },
  SluiceEventLoopLate: { nodejs_eventloop_lag_p99_seconds: '0.2x40' },
  SluiceTokensRejected: { 'ratelimit_auth_rejections_total{reason="token_unknown"}': '0+90x40' },
  SluiceQueueFull: {
    'ratelimit_decisions_total{outcome="denied",reason="queue_full",decided_by="store"}': '0+1x40',
  },
  SluiceRuleAtItsLimit: {
    'ratelimit_rule_decisions_total{rule="r",outcome="denied"}': '0+80x40',
  },
};

/** Alerts about all replicas of an installation. The others name the replica. */
const OF_INSTALLATION = [
  'SluiceGone',
  'SluiceChecksFail',
  'SluiceRulesDiffer',
  'SluiceKeyFull',
  'SluiceTokensRejected',
  'SluiceQueueFull',
  'SluiceRuleAtItsLimit',
];
const INSTALLATION = 'job="sluice",namespace="shop"';
const REPLICA = `${INSTALLATION},pod="sluice-1",instance="10.0.0.1:8080"`;
/** Installations without faults: another release in the namespace, and the same release in another namespace. */
const NEIGHBOURS = [
  'job="other-sluice",namespace="shop",pod="other-sluice-1",instance="10.0.0.2:8080"',
  'job="sluice",namespace="bank",pod="sluice-1",instance="10.0.0.3:8080"',
];
/** Its rules are others. */
const OF_NEIGHBOUR: Values = {
  ...without(SOUND, 'ratelimit_rules{digest="a"}'),
  'ratelimit_rules{digest="other"}': '3x40',
};
/** A program of Node that is not Sluice. */
const FOREIGN = 'nodejs_eventloop_lag_p99_seconds{job="app",namespace="shop",pod="app-1"}';

const folder = useTemporaryFolder();

const promtool = provided('SLUICE_TEST_PROMTOOL');
// `npm test` says if promtool is missing.
const describeWithPromtool = promtool === '' ? describe.skip : describe;

function without(values: Values, name: string): Values {
  return Object.fromEntries(Object.entries(values).filter(([series]) => series !== name));
}

/** Series in promtool's form, all of the target with these labels. */
function asInput(values: Values, target: string): object[] {
  return Object.entries(values).map(([series, amounts]) => {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series)!;
    return { series: `${name}{${[labels, target].filter(Boolean).join(',')}}`, values: amounts };
  });
}

/** The labels of an alert that fires for the replica with faults. */
function labelsOf(alert: string): string {
  const name = `alertname="${alert}"`;
  if (OF_INSTALLATION.includes(alert)) return `{${name},${INSTALLATION}}`;
  return `{${name},${REPLICA}}`;
}

/** Checks with promtool that exactly the alerts with these labels fire after half an hour. */
function expectFiring(series: readonly object[], labels: readonly string[]): void {
  const file = join(folder, 'test.yml');
  const firing = {
    expr: 'group by (alertname, namespace, job, pod, instance) (ALERTS{alertstate="firing"})',
    eval_time: '30m',
    exp_samples: labels.map((one) => ({ labels: one, value: 1 })),
  };
  const test = { interval: '1m', input_series: series, promql_expr_test: [firing] };
  writeFileSync(file, stringify({ rule_files: [join(ROOT, RULES_FILE)], tests: [test] }));
  // promtool fails and says why if other alerts fire.
  execFileSync(promtool, ['test', 'rules', file], { stdio: 'pipe' });
}

describeWithPromtool('beside other installations, an alert', () => {
  const neighbours = [
    ...NEIGHBOURS.flatMap((target) => asInput(OF_NEIGHBOUR, target)),
    { series: FOREIGN, values: '5x40' },
  ];

  test('is silent while nothing is wrong', () => {
    expectFiring([...asInput(SOUND, REPLICA), ...neighbours], []);
  });

  test.each(alerts.map(({ alert }) => alert))(
    'fires for the installation with the fault, and no other: %s',
    (alert) => {
      expect(FAULTS).toHaveProperty(alert);
      const values = { ...SOUND, ...FAULTS[alert] };
      expectFiring([...asInput(values, REPLICA), ...neighbours], [labelsOf(alert)]);
    },
  );

  test('fires if only the places of groups are taken: SluiceQueueFull', () => {
    const denied = `ratelimit_decisions_total{outcome="denied",reason="queue_full_of_group",decided_by="store"}`;
    const values = { ...SOUND, [denied]: '0+1x40' };
    expectFiring([...asInput(values, REPLICA), ...neighbours], [labelsOf('SluiceQueueFull')]);
  });
});

describeWithPromtool('without any installation', () => {
  test('SluiceGone fires', () => {
    expectFiring([{ series: FOREIGN, values: '0x40' }], ['{alertname="SluiceGone"}']);
  });
});

describeWithPromtool('promtool finds nothing wrong', () => {
  const check = (file: string): string =>
    execFileSync(promtool, ['check', 'rules', file], { encoding: 'utf8' });

  test('with the alerts', () => {
    expect(check(join(ROOT, RULES_FILE))).toContain(`SUCCESS: ${alerts.length} rules found`);
  });

  test('with the queries of the dashboard, as rules', () => {
    const file = join(folder, 'dashboard.yml');
    const rules = panelQueries.map(({ expr }, i) => ({
      record: `query:${i}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }));
    writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
    expect(check(file)).toContain(`SUCCESS: ${rules.length} rules found`);
  });
});
