import { keyPath } from '../../../support/dashboard/dashboard-page.js';
import { ratePath, send } from '../../../support/http-client.js';
import { bearer } from '../../../support/tokens.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { useApp } from '../../../support/use-apps.js';

const caller = (name: string, ...scopes: string[]) => ({
  name,
  token: `token-of-the-caller-${name}`,
  scopes: ['debug', ...scopes],
});
const VIEWER = caller('viewer');
const CHECKER = caller('checker', 'check');
const OPERATOR = caller('operator', 'check', 'configure');

const app = useApp(() => ({ ADMIN_PORT: '0', WINDOW_MILLIS: '3600000' }), {
  rules: [{ key_pattern: 'open-.*', key_pattern_is_regex: true, requests_can_pause: true }],
  tokens: [VIEWER, CHECKER, OPERATOR],
});

type Caller = typeof VIEWER;

const detail = async (key: string, who: Caller): Promise<unknown> =>
  (await send(app.adminUrl, 'GET', keyPath('/ui/data/key', key), bearer(who))).json();

const pause = (key: string, pauseMillis: string, who = OPERATOR) =>
  send(app.adminUrl, 'POST', keyPath('/ui/pause', key, { pauseMillis }), bearer(who));

test('a pause denies checks until it is ended, also on the admin port', async () => {
  const key = uniqueKey();
  const statusOfCheck = async (): Promise<number> =>
    (await send(app.url, 'POST', ratePath(key), bearer(OPERATOR))).status;
  const paused = await pause(key, '60000');
  expect([paused.status, paused.json()]).toEqual([200, { key, pauseMillis: 60_000 }]);
  expect(await statusOfCheck()).toBe(429);
  expect((await pause(key, '0')).status).toBe(200);
  expect(await statusOfCheck()).toBe(200);
});

test('the page knows what the scopes and the rules of a key allow', async () => {
  const [key, open] = [uniqueKey(), `open-${uniqueKey()}`];
  const may = (check: boolean, pauseKey: boolean, endHolds: boolean) => ({
    may: { check, pause: pauseKey, endHolds },
  });
  expect(await detail(key, VIEWER)).toMatchObject(may(false, false, false));
  expect(await detail(key, CHECKER)).toMatchObject(may(true, false, false));
  expect(await detail(open, CHECKER)).toMatchObject(may(true, true, false));
  expect(await detail(key, OPERATOR)).toMatchObject(may(true, true, true));
  const statuses = [
    (await pause(key, '1000', VIEWER)).status,
    (await pause(key, '1000', CHECKER)).status,
    (await pause(open, '1000', CHECKER)).status,
  ];
  expect(statuses).toEqual([403, 403, 200]);
});

test.each([
  [{}, 'pauseMillis must be a whole number from 0 to 86400000'],
  [{ pauseMillis: '-1' }, 'pauseMillis must be a whole number from 0 to 86400000'],
])('a pause with %j is rejected', async (query, error) => {
  const path = keyPath('/ui/pause', uniqueKey(), query);
  const answer = await send(app.adminUrl, 'POST', path, bearer(OPERATOR));
  expect(answer.status).toBe(400);
  expect(answer.json()).toMatchObject({ error });
});

test('only a POST pauses', async () => {
  const path = keyPath('/ui/pause', uniqueKey(), { pauseMillis: '1000' });
  const answer = await send(app.adminUrl, 'GET', path, bearer(OPERATOR));
  expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
});
