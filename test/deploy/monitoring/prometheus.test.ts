import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { PATIENT_STORE } from '../../support/both-limiters.js';
import { ruleForAll, rulesFile } from '../../support/grpc-app.js';
import { provided } from '../../support/provided.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { traffic } from '../../support/traffic.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { ROOT } from '../repository-files.js';
import { describeWithPrometheus, Prometheus } from './prometheus.js';
import { alerts, dashboard, panelQueries, RULES_FILE } from './shipped-queries.js';

/** The values of the dashboard's variables. */
const CHOSEN: Readonly<Record<string, string>> = {
  $namespace: 'shop',
  $job: 'sluice',
  $pod: '.*',
  $__rate_interval: '1m',
};

/** One approval in a day, of a key with a lane. */
const RULE = {
  ...ruleForAll({ name: 'all' }),
  queue: { lanes: [{ name: 'batch' }] },
  limits: [{ name: 'day', max_requests_per_window: 1, window_millis: 86_400_000 }],
};

const folder = useTemporaryFolder();
const redis = useRedis();

function withChosen(text: string): string {
  return text.replaceAll(/\$\w+/g, (variable) => CHOSEN[variable] ?? variable);
}

describeWithPrometheus('in a Prometheus that scrapes a replica', () => {
  let replica: ReplicaProcess;
  let prometheus: Prometheus;
  beforeAll(async () => {
    const rules = await rulesFile(folder, RULE);
    replica = await startReplica({ REDIS_URL: redis.url, ...PATIENT_STORE, ...rules });
    prometheus = await Prometheus.start(folder, replica.url);
  });
  afterAll(async () => {
    await prometheus.stop();
    await killReplicas();
  });

  test('every query of the dashboard has a result', async () => {
    const queries = panelQueries.map(({ expr }) => withChosen(expr));
    let silent = queries;
    await until(async () => {
      await traffic(replica.url, uniqueKey());
      const answers = await Promise.all(silent.map((query) => prometheus.query(query)));
      silent = silent.filter((_, i) => !answers[i]!.some(({ value }) => Number.isFinite(value)));
      return silent.length === 0;
    }).catch((cause: unknown) => {
      throw new Error(`silent: ${silent.join(', ')}`, { cause });
    });
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
