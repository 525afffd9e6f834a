import { chmod, rename, rm, writeFile } from 'node:fs/promises';

import { type TestApp, startTestApp } from '../../support/app.js';
import { untilWaiting } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { begin, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile, writeTokens } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const OLD = { name: 'old', token: 'token-that-is-old', scopes: ['check', 'debug', 'configure'] };
const NEW = { ...OLD, name: 'new', token: 'token-that-came-later' };

const RELOADED = 'tokens reloaded';
const GONE = 'tokens still missing or empty, none are in use until they are back';

const folder = useTemporaryFolder();

let app: TestApp;
let file: string;
/** The token that reads the metrics. */
let metricsToken: string;
beforeEach(async () => {
  metricsToken = OLD.token;
  file = await tokenFile(folder, OLD);
  app = await startTestApp({ AUTH_TOKENS_FILE: file, WINDOW_MILLIS: '3600000' });
});
afterEach(async () => {
  await app.stop(0);

  expect(JSON.stringify(app.log)).not.toContain('token-that');
});

async function statusWith(caller: { token: string }): Promise<number> {
  return (await send(app.url, 'POST', ratePath(uniqueKey()), bearer(caller))).status;
}

async function stale(): Promise<number> {
  return (await scrape(app.url, bearer({ token: metricsToken }))).value('ratelimit_tokens_stale');
}

/** Replaces the list of tokens, and waits until the new one is in force. */
async function change(...callers: object[]): Promise<void> {
  const before = app.log.length;
  await writeTokens(file, callers);
  await until(() => app.log.slice(before).some(({ msg }) => msg === RELOADED));
}

test('new tokens in the file are accepted, and removed ones are rejected', async () => {
  await change(NEW);

  expect(await app.logged(({ msg }) => msg === RELOADED)).toMatchObject({
    level: 'info',
    names: ['new'],
    count: 1,
  });
  expect([await statusWith(NEW), await statusWith(OLD)]).toEqual([200, 401]);
});

test('an empty list revokes all tokens', async () => {
  await change();
  expect(await statusWith(OLD)).toBe(401);
  await change(OLD);

  expect(await statusWith(OLD)).toBe(200);
});

const HALF = ['half written', JSON.stringify([NEW]).slice(0, -5)] as const;

test.each(
  extent(
    [HALF],
    [HALF, ['wrong', JSON.stringify([NEW, { ...NEW, name: 'other' }])], ['an object', '{}']],
  ),
)('the last good tokens stay valid while the file is %s', async (_how, text) => {
  await writeTokens(file, text);
  expect(await app.logged(({ level }) => level === 'error')).toMatchObject({
    reason: expect.stringMatching(
      /^AUTH_TOKENS_FILE: got .*, takes a JSON list of tokens$/,
    ) as unknown,
    msg: 'tokens not reloaded, the last good ones stay in use',
  });
  expect([await statusWith(NEW), await statusWith(OLD)]).toEqual([401, 200]);
  expect(await stale()).toBe(1);
  await change(NEW);
  metricsToken = NEW.token;

  expect([await statusWith(NEW), await statusWith(OLD)]).toEqual([200, 401]);
  expect(await stale()).toBe(0);
});

test('a file that every user of the machine can read is a warning, at the start and at each reload', async () => {
  const warnings = () => app.log.filter(({ level }) => level === 'warn');
  const warning = {
    variable: 'AUTH_TOKENS_FILE',
    path: file,
    mode: '0644',
    msg: 'every user of this machine can read the file of AUTH_TOKENS_FILE: remove that right, as by chmod o-r',
  };
  await change(NEW);
  expect(warnings()).toEqual([]);
  await writeFile(`${file}.open`, JSON.stringify([OLD]));
  await chmod(`${file}.open`, 0o644);
  await rename(`${file}.open`, file);
  await app.logged(({ msg }) => msg === warning.msg);
  await app.stop(0);
  app = await startTestApp({ AUTH_TOKENS_FILE: file });

  expect(warnings()).toEqual([expect.objectContaining(warning)]);
});

test.each([
  ['deleted', () => rm(file)],
  ['emptied', () => writeFile(file, '')],
])('every token is rejected while the file is %s', async (_how, remove) => {
  await remove();
  const line = await app.logged(({ level }) => level === 'error');
  expect(line.msg).toBe('tokens not reloaded, the last good ones stay in use until the next look');
  await app.logged(({ msg }) => msg === GONE);
  expect([await statusWith(OLD), await statusWith(NEW)]).toEqual([401, 401]);
  await change(NEW);

  expect([await statusWith(OLD), await statusWith(NEW)]).toEqual([401, 200]);
});

test('while the file is gone, the last tokens may read the metrics, which say so, and nothing else', async () => {
  const gone = async (): Promise<number> =>
    (await scrape(app.url, bearer(OLD))).value('ratelimit_tokens_gone');
  expect(await gone()).toBe(0);
  await rm(file);
  await until(async () => (await stale()) === 1);
  await until(async () => (await gone()) === 1);

  expect(await stale()).toBe(0);
  expect((await send(app.url, 'GET', '/debug', bearer(OLD))).status).toBe(401);
  expect((await send(app.url, 'GET', '/metrics', bearer(NEW))).status).toBe(401);
  await change();
  expect((await send(app.url, 'GET', '/metrics', bearer(OLD))).status).toBe(401);
});

test('a check that waits goes on waiting when its token is removed', async () => {
  const key = uniqueKey();
  await send(app.url, 'POST', `${ratePath(key)}?maxRequests=1`, bearer(OLD));
  const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`, bearer(OLD));
  await untilWaiting(app.url, key, 1, bearer(OLD));
  await change(NEW);
  await send(app.url, 'POST', `${ratePath(key)}?maxRequests=3`, bearer(NEW));

  expect((await waiting.answer).status).toBe(200);
});
