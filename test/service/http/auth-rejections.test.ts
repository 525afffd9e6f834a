import { ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';

const REJECTIONS = 'ratelimit_auth_rejections_total';

const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };
const CHECKER = {
  name: 'checker',
  token: 'token-that-may-check',
  scopes: ['check'],
  key_patterns: ['own.*'],
};

const start = useApps();
let app: OwnApp;
beforeEach(async () => {
  app = await start({}, { tokens: [OPERATOR, CHECKER] });
});

const counts = async (): Promise<Record<string, number>> =>
  (await scrape(app.url, bearer(OPERATOR))).valuesOf(REJECTIONS);

function series(token_required: number, unknown: number, scope: number, key: number): object {
  return {
    [`${REJECTIONS}{reason="token_required"}`]: token_required,
    [`${REJECTIONS}{reason="token_unknown"}`]: unknown,
    [`${REJECTIONS}{reason="scope_missing"}`]: scope,
    [`${REJECTIONS}{reason="key_not_allowed"}`]: key,
  };
}

/** How many rejections of each reason the log has. */
function logged(): Record<string, number> {
  const all: Record<string, number> = {};
  for (const { rejected = {} } of app.log) {
    for (const [reason, count] of Object.entries(rejected as Record<string, number>)) {
      all[reason] = (all[reason] ?? 0) + count;
    }
  }
  return all;
}

test('rejected requests are counted by reason, and accepted ones are not', async () => {
  expect(await counts()).toEqual(series(0, 0, 0, 0));
  const own = ratePath(`own-${uniqueKey()}`);
  await send(app.url, 'POST', own);
  await send(app.url, 'POST', own, bearer({ token: 'token-that-is-unknown' }));
  await send(app.url, 'POST', own, bearer({ token: 'token-that-is-unknown-too' }));
  await send(app.url, 'POST', own, bearer(OPERATOR));
  await send(app.url, 'POST', `${own}?maxRequests=1`, bearer(CHECKER));
  await send(app.url, 'POST', ratePath('other'), bearer(CHECKER));
  await send(app.url, 'POST', own, bearer(CHECKER));

  expect(await counts()).toEqual(series(1, 2, 2, 1));
});

test('a burst of rejections has one log line at once and one a second later, which count them all', async () => {
  const path = ratePath(uniqueKey());
  const wrong = bearer({ token: 'token-that-is-unknown' });
  await Promise.all(Array.from({ length: 50 }, () => send(app.url, 'POST', path, wrong)));
  await send(app.url, 'POST', path);
  await until(() => logged().token_required === 1);

  expect(logged()).toEqual({ token_required: 1, token_unknown: 50 });
  const lines = app.log.filter((line) => 'rejected' in line);
  expect(lines[0]).toMatchObject({ level: 'warn', msg: 'requests rejected for their tokens' });
  // Fifty requests may take some seconds on a busy machine, but far fewer than fifty.
  expect(lines.length).toBeLessThan(10);
  expect(JSON.stringify(app.log)).not.toContain('token-that');
});
