import type { KeyHistory } from '../../../src/service/fleet/key-history.js';
import type { TestApp } from '../../support/app.js';
import { keyPath } from '../../support/dashboard/dashboard-page.js';
import { untilWaiting } from '../../support/debug-state.js';
import { begin, checkTimes, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const startApp = useApps();

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
  const settings = { ...HOUR, REDIS_URL: redis.url, KEY_PREFIX: `${uniqueKey()}:` };
  const [first, second, third] = await Promise.all([
    startApp(settings),
    startApp(settings),
    startApp(settings),
  ]);
  await checkTimes(second.url, 'job', 1);
  expect(await historyOf(first, 'job')).toMatchObject({ stepMillis: 2000, approved: [] });
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
    sum(history.approved) === 3 && history.waiting.at(-1) === 0;
  const all = await untilHistory(third, 'job', isAll);

  expect(sum(all.denied)).toBe(4);
  const waits = all.waitMillis.filter((millis) => millis !== null);
  expect(waits).toHaveLength(1);
  expect(waits[0]).toBeGreaterThan(0);
  await second.stop(0);
  const kept = await historyOf(first, 'job');
  expect([sum(kept.approved), sum(kept.denied)]).toEqual([3, 4]);
});

test('a key that nobody looks at has no history in Redis', async () => {
  const prefix = `${uniqueKey()}:`;
  const app = await startApp({ ...HOUR, REDIS_URL: redis.url, KEY_PREFIX: prefix });
  await untilHistory(app, 'seen', isCounted);
  await checkTimes(app.url, 'other', 1);
  const minutes = await redis.client.keys(`${prefix}{*}:history:*`);

  expect(minutes.length).toBeGreaterThan(0);
  expect(minutes.filter((name) => !name.startsWith(`${prefix}{seen}:`))).toEqual([]);
});

test('the embedded limiter has the history of a key', async () => {
  const app = await startApp(HOUR);
  await untilHistory(app, 'job', isCounted);
  await checkTimes(app.url, 'job', 5);
  const history = await untilHistory(app, 'job', ({ denied }) => sum(denied) === 2);

  expect(sum(history.approved)).toBe(3);
  const { length } = history.approved;
  const lists = [history.denied, history.waiting, history.waitMillis];
  expect(lists.map((list) => list.length)).toEqual([length, length, length]);
});
