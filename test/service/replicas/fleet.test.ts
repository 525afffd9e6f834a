import type { TestApp } from '../../support/app.js';
import { decisionsOf, overviewOf } from '../../support/dashboard/dashboard-page.js';
import { begin, checkTimes, ratePath, send } from '../../support/http-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const startApp = useApps();

let settings: Readonly<Record<string, string>>;
let names: { readonly reports: string; readonly channel: string };
beforeEach(() => {
  const prefix = `${uniqueKey()}:`;
  settings = {
    REDIS_URL: redis.url,
    KEY_PREFIX: prefix,
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
  };
  names = { reports: `${prefix}{}:reports`, channel: `${prefix}{}:wake` };
});

/** Starts replicas, and resolves when each listens for questions. */
async function start(count: number): Promise<TestApp[]> {
  const apps = await Promise.all(Array.from({ length: count }, () => startApp(settings)));
  await until(async () => (await listening()) === count);
  return apps;
}

async function listening(): Promise<unknown> {
  return (await redis.client.pubsub('NUMSUB', names.channel))[1];
}

test('each replica shows the decisions, denials and waiters of all', async () => {
  const [first, second, third] = (await start(3)) as [TestApp, TestApp, TestApp];
  await checkTimes(first.url, 'a', 4);
  await checkTimes(second.url, 'a', 3);
  await checkTimes(second.url, 'b', 3);
  const waiting = begin(second.url, 'POST', `${ratePath('b')}?canWait=true`);
  await untilWaiting(first.url, 'b', 1);

  for (const asked of [third, first]) {
    const overview = await until(async () => {
      const found = await overviewOf(asked.url);
      return found.replicas.length === 3 && found;
    });
    expect(overview.replicas[0]!.replica).toBe(overview.replica);
    const sum = (read: (one: (typeof overview.replicas)[0]) => number): number =>
      overview.replicas.reduce((all, one) => all + read(one), 0);
    expect([sum((one) => one.decisions.approved), sum((one) => one.decisions.denied)]).toEqual([
      2, 8,
    ]);
    expect(sum((one) => one.waiting)).toBe(1);
    const rows = new Map(overview.keys.map((row) => [row.key, row.recentDenials]));
    expect(rows.get('a')).toMatchObject({ count: 6, byReason: { limit_reached: 6 } });
    expect(rows.get('b')).toMatchObject({ count: 2 });
  }
  waiting.disconnect();
});

test('the detail of a key has the denials of all', async () => {
  const [first, second] = (await start(2)) as [TestApp, TestApp];
  await checkTimes(first.url, 'a', 3);
  await checkTimes(second.url, 'a', 2);
  await until(async () => {
    const answer = await send(second.url, 'GET', '/ui/data/key?key=a');
    const { recentDenials } = answer.json() as { recentDenials?: { count: number } };
    return recentDenials?.count === 4;
  });
});

test('nothing is written while nobody looks, and what was written expires', async () => {
  const [first] = (await start(2)) as [TestApp];
  await checkTimes(first.url, 'a', 3);
  expect(await redis.client.exists(names.reports)).toBe(0);
  await until(async () => (await overviewOf(first.url)).replicas.length === 2);
  expect(await redis.client.hlen(names.reports)).toBe(2);
  expect(await redis.client.pttl(names.reports)).toBeGreaterThan(0);
});

test('reports of another form are ignored', async () => {
  const [first] = (await start(1)) as [TestApp];
  await checkTimes(first.url, 'a', 2);
  await redis.client.hset(names.reports, { newer: '{"replica":"newer"}', broken: '{' });
  expect(decisionsOf(await overviewOf(first.url))).toMatchObject({ approved: 1, denied: 1 });
  expect((await overviewOf(first.url)).replicas).toHaveLength(1);
});

test('without the dashboard a replica neither listens nor reports', async () => {
  const { url } = await startApp({ ...settings, DEBUG_ENDPOINTS: 'false' });
  await checkTimes(url, 'a', 1);
  expect(await listening()).toBe(0);
});
