import type { KeyHistory } from '../../../src/service/fleet/key-history.js';
import type { TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { keyPath, overviewOf } from '../../support/dashboard/dashboard-page.js';
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
    ...PATIENT_STORE,
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

test('each replica shows the rates of all, and those of a replica that has ended vanish', async () => {
  const own = { ...settings, MAX_REQUESTS: '1000' };
  const [first, second] = await Promise.all([startApp(own), startApp(own)]);
  await until(async () => (await listening()) === 2);
  await checkTimes(first.url, 'a', 6);
  await checkTimes(second.url, 'a', 4);
  await checkTimes(second.url, 'b', 5);
  const approvedOf = ({ keys }: Awaited<ReturnType<typeof overviewOf>>, key: string): number =>
    keys.find((row) => row.key === key)?.rates?.approved ?? 0;
  const isNear = (rate: number, other: number): boolean => Math.abs(rate - other) < 1e-9;
  const seen = await until(async () => {
    const overview = await overviewOf(first.url);
    const [ofFirst, ofSecond] = overview.replicas.map(({ perSecond = 0 }) => perSecond);
    if (!ofFirst || !ofSecond) return false;
    // Each replica has its own time over which it takes rates. Until all checks of the second are in them, the shares differ.
    const isA = isNear(approvedOf(overview, 'a'), ofFirst + (ofSecond * 4) / 9);
    return isA && isNear(approvedOf(overview, 'b'), (ofSecond * 5) / 9) && overview;
  });
  expect(seen.total.approved).toBeCloseTo(approvedOf(seen, 'a') + approvedOf(seen, 'b'), 9);

  await second.stop(0);
  await until(async () => {
    const overview = await overviewOf(first.url);
    return overview.replicas.length === 1 && approvedOf(overview, 'b') === 0;
  });
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
  await until(async () => (await redis.client.hlen(names.reports)) === 2);
  expect(await redis.client.pttl(names.reports)).toBeGreaterThan(0);
});

test('without the dashboard a replica neither listens nor reports', async () => {
  const { url } = await startApp({ ...settings, DEBUG_ENDPOINTS: 'false' });
  await checkTimes(url, 'a', 1);
  expect(await listening()).toBe(0);
});

const HOUR = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '3' };

async function historyOf({ url }: TestApp, key: string): Promise<KeyHistory> {
  const answer = await send(url, 'GET', keyPath('/ui/data/key', key));
  return (answer.json() as { history: KeyHistory }).history;
}

/** Reads the history as often as a page does, until it is as wanted. */
function untilHistory(
  app: TestApp,
  key: string,
  isWanted: (history: KeyHistory) => boolean,
): Promise<KeyHistory> {
  return until(async () => {
    const history = await historyOf(app, key);
    return isWanted(history) && history;
  });
}

const sum = (numbers: readonly (number | null)[]): number =>
  numbers.reduce<number>((all, one) => all + (one ?? 0), 0);

const isCounted = ({ approved }: KeyHistory): boolean => approved.length > 0;

test('the history of a key has what all replicas decide, whichever is asked, and what one did that has ended', async () => {
  const settings = {
    ...PATIENT_STORE,
    ...HOUR,
    REDIS_URL: redis.url,
    KEY_PREFIX: `${uniqueKey()}:`,
  };
  const [first, second, third] = await Promise.all([
    startApp(settings),
    startApp(settings),
    startApp(settings),
  ]);
  await checkTimes(second.url, 'job', 1);
  expect(await historyOf(first, 'job')).toMatchObject({ stepMillis: 2000 });
  await untilHistory(first, 'job', isCounted);

  await checkTimes(first.url, 'job', 1);
  const approved = await send(second.url, 'POST', ratePath('job'));
  const { request_id: id } = approved.json() as { request_id: string };
  await checkTimes(third.url, 'job', 4);
  const waiting = begin(second.url, 'POST', `${ratePath('job')}?canWait=true`);
  await untilWaiting(first.url, 'job', 1);
  await untilHistory(third, 'job', (history) => history.waiting.at(-1) === 1);
  await send(first.url, 'DELETE', `${ratePath('job')}/${id}`);
  expect((await waiting.answer).status).toBe(200);
  const isAll = (history: KeyHistory): boolean =>
    sum(history.approved) === 4 && history.waiting.at(-1) === 0;
  const all = await untilHistory(third, 'job', isAll);

  expect(sum(all.denied)).toBe(4);
  const waits = all.waitMillis.filter((millis) => millis !== null);
  expect(waits).toHaveLength(1);
  expect(waits[0]).toBeGreaterThan(0);
  await second.stop(0);
  const kept = await historyOf(first, 'job');
  expect([sum(kept.approved), sum(kept.denied)]).toEqual([4, 4]);
});

test('the embedded limiter has the history of a key from before somebody looked', async () => {
  const app = await startApp(HOUR);
  await checkTimes(app.url, 'job', 5);
  await until(async () => (await overviewOf(app.url)).keys[0]?.rates !== undefined);
  const history = await untilHistory(app, 'job', ({ denied }) => sum(denied) === 2);

  expect(sum(history.approved)).toBe(3);
  const { length } = history.approved;
  const lists = [history.denied, history.waiting, history.waitMillis];
  expect(lists.map((list) => list.length)).toEqual([length, length, length]);
});
