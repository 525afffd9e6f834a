import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { PATIENT_STORE } from '../../support/both-limiters.js';
import { untilWaiting } from '../../support/debug-state.js';
import { ruleForAll, rulesFile } from '../../support/grpc-app.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { provided } from '../../support/provided.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
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

/** One approval in a day. */
const RULE = {
  ...ruleForAll({ name: 'all' }),
  limits: [{ name: 'day', max_requests_per_window: 1, window_millis: 86_400_000 }],
};

const folder = useTemporaryFolder();
const redis = useRedis();

function withChosen(text: string): string {
  return text.replaceAll(/\$\w+/g, (variable) => CHOSEN[variable] ?? variable);
}

/** One check is approved, one denied by a further limit of its rule, and one waits until it is approved. */
async function traffic(url: string): Promise<void> {
  const key = uniqueKey();
  const id = await approve(url, key);
  await send(url, 'POST', ratePath(key));
  const waiting = begin(url, 'POST', `${ratePath(key)}?canWait=true`);
  await untilWaiting(url, key, 1);
  await send(url, 'DELETE', `${ratePath(key)}/${id}`);
  await waiting.answer;
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
      await traffic(replica.url);
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
