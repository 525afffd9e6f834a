import { checkTimes, send } from '../../../support/http-client.js';
import {
  keyPath,
  keysOf,
  type Overview,
  overviewOf,
} from '../../../support/dashboard/dashboard-page.js';
import { startRedisServer } from '../../../support/redis-server.js';
import { until } from '../../../support/until.js';
import { useApps } from '../../../support/use-apps.js';

const start = useApps();

test('a store that could never be read is reported, and hides nothing else', async () => {
  const app = await start({ REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200' });
  const overview = await overviewOf(app.url, { search: 'key' });

  expect(overview).toMatchObject({ isComplete: false, asOfMillis: null, keys: [] });
  expect(overview.problems).toEqual(['store unavailable']);
  expect(overview.survey).toMatchObject({ failure: 'unavailable', isComplete: false });
  expect(overview.replicas).toHaveLength(1);
});

test.each(['deny', 'local'])(
  'in an outage everything stays as it was known last, whatever this replica decides alone (%s)',
  async (policy) => {
    const server = await startRedisServer();
    const settings = {
      REDIS_URL: server.url,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '2',
      STORE_OUTAGE_POLICY: policy,
      STORE_TIMEOUT_MILLIS: '1000',
    };
    const [app, other] = await Promise.all([start(settings), start(settings)]);
    await checkTimes(app.url, 'key', 2);
    await checkTimes(other.url, 'key', 1);
    const isKnown = ({ replicas, keys }: Overview): boolean =>
      replicas.length === 2 && keys[0]?.states[0] === 'denied';
    const before = await until(async () => {
      const overview = await overviewOf(app.url);
      return isKnown(overview) && overview;
    });
    expect(before).toMatchObject({ isComplete: true, asOfMillis: before.nowMillis });
    await server.stop();
    await checkTimes(app.url, 'new', 2);
    const after = await until(async () => {
      const overview = await overviewOf(app.url);
      return !overview.isComplete && overview;
    });

    expect(keysOf(after.keys)).toEqual(['key']);
    expect(after.keys[0]).toMatchObject({
      ...{ states: ['denied', 'used'], isCurrent: false, denied: 1 },
      limits: [{ used: 2 }],
    });
    expect(after.survey.keys).toBe(1);
    expect(after.asOfMillis).toBeLessThanOrEqual(before.nowMillis);
    expect(after.replicas.map(({ replica }) => replica).sort()).toEqual(
      before.replicas.map(({ replica }) => replica).sort(),
    );
    expect(after.replicas[1]).toMatchObject({ decisions: before.replicas[1]!.decisions });
    expect(after.replicas[0]!.reportedMillis).toBe(0);
    expect(after.replicas[1]!.reportedMillis).toBeGreaterThan(0);
    const detail = await send(app.url, 'GET', keyPath('/ui/data/key', 'new'));
    if (policy === 'deny') expect(detail.status).toBe(503);
    else expect(detail.json()).toMatchObject({ isCurrent: false, limits: [{ used: 2 }] });
  },
);
