import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { provided } from '../../support/provided.js';
import { killReplicas } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { ROOT } from '../repository-files.js';
import { FaultyServices } from './faulty-services.js';
import { describeWithPrometheus, Prometheus } from './prometheus.js';
import { alerts, dashboard, panelQueries, RULES_FILE } from './shipped-queries.js';

/** Alerts that are costly to provoke here. `alerts.test.ts` makes them fire. */
const NOT_PROVOKED = [
  'SluiceGone',
  'SluiceStoreFull',
  'SluiceTokensGone',
  'SluiceStoreSlow',
  'SluiceManyWaiters',
  'SluiceEventLoopLate',
];
/** The values of the dashboard's variables. */
const CHOSEN: Readonly<Record<string, string>> = {
  $namespace: 'shop',
  $job: 'sluice',
  $pod: '.*',
  $__rate_interval: '1m',
};

const folder = useTemporaryFolder();
const redis = useRedis();

function withChosen(text: string): string {
  return text.replaceAll(/\$\w+/g, (variable) => CHOSEN[variable] ?? variable);
}

/** @returns a function that throws an error with this error as its cause, and a list of what is left */
const withList =
  (what: string, left: () => readonly string[]) =>
  (cause: unknown): never => {
    throw new Error(`${what}: ${left().join(', ')}`, { cause });
  };

describeWithPrometheus('in a Prometheus that scrapes replicas with faults', () => {
  let services: FaultyServices;
  let prometheus: Prometheus;
  beforeAll(async () => {
    services = await FaultyServices.start(folder, redis);
    prometheus = await Prometheus.start(folder, services.targets);
    await services.traffic();
    await services.break();
  });
  afterAll(async () => {
    await prometheus.stop();
    await killReplicas();
    services.stop();
  });

  test('every query of the dashboard has a result', async () => {
    const queries = panelQueries.map(({ expr }) => withChosen(expr));
    let silent = queries;
    await until(async () => {
      await services.traffic();
      const answers = await Promise.all(silent.map((query) => prometheus.query(query)));
      silent = silent.filter((_, i) => !answers[i]!.some(({ value }) => Number.isFinite(value)));
      return silent.length === 0;
    }).catch(withList('silent', () => silent));
  });

  test('every alert that is provoked is active', async () => {
    const provoked = alerts
      .map(({ alert }) => alert)
      .filter((name) => !NOT_PROVOKED.includes(name));
    expect(provoked.length).toBeGreaterThan(0);
    let inactive = provoked;
    await until(async () => {
      await services.traffic();
      const active = await prometheus.activeAlerts();
      inactive = inactive.filter((name) => !active.includes(name));
      return inactive.length === 0;
    }).catch(withList('inactive', () => inactive));
  });

  test.each(dashboard.templating.list.filter(({ type }) => type === 'query'))(
    'the variable $name has values',
    async ({ query }) => {
      const text = typeof query === 'string' ? query : query.query;
      const [, selector = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(text)!;
      expect(await prometheus.labelValues(withChosen(selector), label)).toContainEqual(
        expect.stringMatching(/^(?:shop|sluice.*)$/),
      );
    },
  );

  test('promtool finds nothing wrong with the alerts', () => {
    const check = ['check', 'rules', join(ROOT, RULES_FILE)];
    expect(execFileSync(provided('SLUICE_TEST_PROMTOOL'), check, { encoding: 'utf8' })).toContain(
      `SUCCESS: ${alerts.length} rules found`,
    );
  });
});
