import { send } from '../../support/http-client.js';
import { traffic } from '../../support/traffic.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { inBackticks, tableRows } from '../../support/docs/tables.js';

const key = uniqueKey();
const limits = [{ name: 'hour', max_requests_per_window: 1, window_millis: 3_600_000 }];
const queue = { lanes: [{ name: 'batch' }] };
const app = useApp(undefined, { rules: [{ key_pattern: key, name: 'one', limits, queue }] });

/** The metrics of the page: the name and the labels of each. */
const listed = tableRows('docs/metrics-and-alerts.md', ['Metric', 'By', 'Says']).map(
  ([metric, labels = '']) => ({ name: inBackticks(metric)!, labels: labels.match(/\w+/g) ?? [] }),
);

test('the table of metrics names each metric of Sluice, with its labels', async () => {
  await traffic(app.url, key);
  const { text } = await send(app.url, 'GET', '/metrics');
  const served = [...text.matchAll(/^# TYPE (ratelimit_\w+)/gm)].map(([, name]) => name);
  expect(listed.map(({ name }) => name).sort()).toEqual([...served].sort());
  for (const { name, labels } of listed) {
    const sample = new RegExp(`^${name}(?:_sum)?\\{?([^}\\n]*)`, 'm').exec(text);
    const inText = [...sample![1]!.matchAll(/(\w+)="/g)]
      .map(([, label]) => label)
      // The label of a histogram's buckets.
      .filter((label) => label !== 'le');
    expect([name, labels]).toEqual([name, inText]);
  }
});
