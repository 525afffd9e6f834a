import { scrape, type Series } from '../../support/prometheus-text.js';
import { traffic } from '../../support/traffic.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { readText } from '../repository-files.js';
import { groupingsIn, type Selector, selectorsIn } from './selectors.js';
import { alerts, dashboard, panelQueries } from './shipped-queries.js';

/** Labels of the target, which Prometheus or its operator adds. */
const OF_THE_TARGET = ['namespace', 'job', 'pod', 'instance'];

const key = uniqueKey();
const rule = {
  key_pattern: key,
  name: 'one',
  max_requests_per_window: 1,
  window_millis: 3600000,
  limits: [{ name: 'day', max_requests_per_window: 2, window_millis: 86400000 }],
  queue: { lanes: [{ name: 'batch' }] },
};
const app = useApp(undefined, { rules: [rule] });
let series: readonly Series[];
beforeAll(async () => {
  await traffic(app.url, key);
  ({ series } = await scrape(app.url));
});

/** The parts of a selector that no series of `/metrics` has. */
function missingOf({ metric, matchers }: Selector): string[] {
  const ofMetric = series.filter(({ name }) => name === metric);
  if (ofMetric.length === 0) return [metric];
  return matchers
    .filter(({ label }) => !OF_THE_TARGET.includes(label))
    .filter(({ label, operator, value }) => {
      const values = ofMetric.flatMap(({ labels }) => labels[label] ?? []);
      if (!operator.endsWith('~')) return !values.includes(value);
      // Each of the alternatives.
      return !value
        .split('|')
        .every((one) => values.some((each) => new RegExp(`^(?:${one})$`).test(each)));
    })
    .map(({ label, operator, value }) => `${metric}{${label}${operator}"${value}"}`);
}

/** The labels by which a query groups and which none of its metrics has. */
function unknownGroupings(expr: string): string[] {
  const metrics = selectorsIn(expr).map(({ metric }) => metric);
  const labels = series
    .filter(({ name }) => metrics.includes(name))
    .flatMap((one) => Object.keys(one.labels));
  return groupingsIn(expr).filter((label) => ![...labels, ...OF_THE_TARGET].includes(label));
}

describe.each([
  ['alert', alerts.map(({ alert, expr }) => ({ name: alert, expr }))],
  ['query of the dashboard', panelQueries.map(({ panel, expr }) => ({ name: panel, expr }))],
])('each %s', (_what, queries) => {
  test.each(queries)('asks for existing series: $name', ({ expr }) => {
    const selectors = selectorsIn(expr);

    expect(selectors.length).toBeGreaterThan(0);
    expect(selectors.flatMap(missingOf)).toEqual([]);
    expect(unknownGroupings(expr)).toEqual([]);
    // Without the buckets there would be no result.
    if (expr.includes('histogram_quantile')) expect(groupingsIn(expr)).toContain('le');
  });
});

test('an unknown metric, label or value is found', () => {
  const wrong =
    'sum by (rool) (rate(ratelimit_rule_decisions_total{outcome="denyed",why=~"a|b"}[5m]))';

  expect(selectorsIn(wrong).flatMap(missingOf)).toEqual([
    'ratelimit_rule_decisions_total{outcome="denyed"}',
    'ratelimit_rule_decisions_total{why=~"a|b"}',
  ]);
  expect(selectorsIn('ratelimit_wating').flatMap(missingOf)).toEqual(['ratelimit_wating']);
  expect(unknownGroupings(wrong)).toEqual(['rool']);
});

describe('each alert', () => {
  test.each(alerts)(
    'has a severity and an instruction: $alert',
    ({ alert, labels, annotations }) => {
      expect(['critical', 'warning', 'info']).toContain(labels.severity);
      expect(annotations.runbook).toBe(`docs/metrics-and-alerts.md#${alert.toLowerCase()}`);
    },
  );

  test('has a place on the page, in the order of the file', () => {
    const headings = [...readText('docs/metrics-and-alerts.md').matchAll(/^### (Sluice\w+)$/gm)];
    expect(headings.map(([, name]) => name)).toEqual(alerts.map(({ alert }) => alert));
  });
});

describe('the dashboard', () => {
  test('asks the chosen Prometheus for the chosen pods', () => {
    for (const { panel, expr } of panelQueries) {
      for (const { matchers } of selectorsIn(expr)) {
        const chosen = matchers
          .slice(0, 3)
          .map(({ label, operator, value }) => label + operator + value);
        expect([panel, ...chosen]).toEqual([
          panel,
          'namespace=~$namespace',
          'job=~$job',
          'pod=~$pod',
        ]);
      }
    }
    const withQueries = dashboard.panels.filter(({ type }) => type !== 'row');
    expect(new Set(withQueries.map(({ datasource }) => datasource?.uid))).toEqual(
      new Set(['${datasource}']),
    );
  });

  test.each(dashboard.templating.list.filter(({ type }) => type === 'query'))(
    'takes the values of its variable $name from an existing label',
    ({ query }) => {
      const text = typeof query === 'string' ? query : query.query;
      const [, selector = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(text)!;
      expect(selectorsIn(selector).flatMap(missingOf)).toEqual([]);
      expect(OF_THE_TARGET).toContain(label);
    },
  );

  test('shows every metric of Sluice', () => {
    const shown = panelQueries.flatMap(({ expr }) => selectorsIn(expr)).map(({ metric }) => metric);
    const own = series.map(({ name }) => name).filter((name) => name.startsWith('ratelimit_'));
    const whole = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '');
    const missing = own.filter((name) => !shown.map(whole).includes(whole(name)));
    expect(missing).toEqual([]);
  });
});
