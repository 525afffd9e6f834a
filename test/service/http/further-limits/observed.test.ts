import { approve, ratePath, send } from '../../../support/http-client.js';
import { scrape } from '../../../support/prometheus-text.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { type OwnApp, useApps } from '../../../support/use-apps.js';

const HOUR = 3_600_000;
const RULE = {
  key_pattern: '.*',
  key_pattern_is_regex: true,
  max_requests_per_window: 2,
  window_millis: HOUR,
  limits: [{ name: 'day', max_requests_per_window: 1, window_millis: 24 * HOUR }],
};

const start = useApps();
let app: OwnApp;

async function startWith(rule: object): Promise<void> {
  app = await start({ LOG_4XX: 'true' }, { rules: [rule] });
}

const byLimit = async (): Promise<unknown> =>
  (await scrape(app.url)).valuesOf('ratelimit_limit_denials_total');

test('a denial is counted and logged with the name of the limit', async () => {
  await startWith(RULE);
  const key = uniqueKey();
  await approve(app.url, key);
  await send(app.url, 'POST', ratePath(key));
  expect(await byLimit()).toEqual({
    'ratelimit_limit_denials_total{limit="day",outcome="denied"}': 1,
  });
  const line = await app.logged(({ errorCode }) => errorCode === 'RATE_LIMIT_EXCEEDED');
  expect(line).toMatchObject({ key, limit: 'day' });
});

test("a denial by the key's own maximum counts by the name of the rule, or as default", async () => {
  await startWith(RULE);
  const key = uniqueKey();
  await send(app.url, 'POST', `${ratePath(key)}?hits=3`);
  expect(await byLimit()).toEqual({
    'ratelimit_limit_denials_total{limit="default",outcome="denied"}': 1,
  });
});

test('a denial that a rule in shadow mode lets pass is counted and logged as such', async () => {
  await startWith({ ...RULE, shadow: true });
  const key = uniqueKey();
  await approve(app.url, key);
  await send(app.url, 'POST', ratePath(key));
  expect(await byLimit()).toEqual({
    'ratelimit_limit_denials_total{limit="day",outcome="shadowed"}': 1,
  });
  const line = await app.logged(({ msg }) => String(msg).includes('shadow rule would'));
  expect(line).toMatchObject({ key, reason: 'limit_reached', limit: 'day' });
});

test('a denial of a key without further limits is not counted by limit, nor logged with one', async () => {
  await startWith({ ...RULE, max_requests_per_window: 1, limits: [] });
  const key = uniqueKey();
  await approve(app.url, key);
  await send(app.url, 'POST', ratePath(key));
  expect(await byLimit()).toEqual({});
  expect(await app.logged(({ errorCode }) => errorCode !== undefined)).not.toHaveProperty('limit');
});
