import { randomUUID } from 'node:crypto';
import { chmod, rename, rm, writeFile } from 'node:fs/promises';

import { startTestApp, type TestApp } from '../../support/app.js';
import { type DebugState, debugState, untilWaiting } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { type Answer, approvedId, begin, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import type { LogLine } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile, writeTokens } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { type OwnApp, useApp, useApps } from '../../support/use-apps.js';

const CHECKER = { name: 'checker', token: 'token-that-may-check', scopes: ['check'] };
const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };
const start = useApps();
const folder = useTemporaryFolder();

const RELEASER = { name: 'releaser', token: 'token-that-may-release', scopes: ['release'] };
const CONFIGURER = { name: 'configurer', token: 'token-without-checks', scopes: ['configure'] };
const NOBODY = { name: 'nobody', token: 'token-that-may-nothing', scopes: [] };
const ALL: readonly { token: string; scopes: readonly string[] }[] = [
  ...[CHECKER, RELEASER, OPERATOR, CONFIGURER, NOBODY],
];

const CHALLENGE = 'Bearer realm="sluice"';

const stateOf = (url: string, key: string): Promise<DebugState> =>
  debugState(url, key, bearer(OPERATOR));

describe('with tokens', () => {
  const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
  const app = useApp(() => ({ ...hour, LOG_2XX: 'true', LOG_4XX: 'true' }), {
    tokens: [...ALL],
  });

  function expectRefusal(answer: Answer, status: number, challenge: string, key?: string): void {
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([status, challenge]);
    expect(answer.headers['content-type']).toBe('application/json');
    const error: unknown = expect.stringMatching(/token/);
    expect(answer.json()).toStrictEqual(key === undefined ? { error } : { error, key });
  }

  /** A request without a token that the scope allows is rejected, and makes no key. */
  test.each([
    ['a check', 'POST', '/rate/{key}', 'check'],
    ['a check by GET', 'GET', '/rate/{key}', 'check'],
    ['a check that would wait', 'POST', '/rate/{key}?canWait=true', 'check'],
    ['a peek', 'GET', '/rate/{key}?peek=true', 'check'],
    ['the status of a request', 'GET', `/rate/{key}/${randomUUID()}`, 'check'],
    ['a renewal', 'PUT', `/rate/{key}/${randomUUID()}`, 'check'],
    ['a correction', 'PUT', `/rate/{key}/${randomUUID()}?hits=2`, 'check'],
    ['a pause', 'PUT', '/rate/{key}?pauseMillis=1000', 'check'],
    ['a report of what remains', 'PUT', '/rate/{key}?remaining=1', 'check'],
    ['checks in bulk', 'POST', '/rate', 'check'],
    ['a release', 'DELETE', '/rate/{key}/id', 'release'],
    ['releases in bulk', 'DELETE', '/rate', 'release'],
    ['the end of a hold', 'DELETE', '/rate/{key}/holders/0123456789abcdef', 'configure'],
    ['the state of a key', 'GET', '/debug/{key}', 'debug'],
    ['the state of a key that can not be decoded', 'GET', '/debug/%zz', 'debug'],
    ['a path below the path of a key', 'GET', '/debug/{key}/more', 'debug'],
    ['the state of all keys', 'GET', '/debug', 'debug'],
    ['the metrics', 'GET', '/metrics', 'debug'],
    ['the overview of the dashboard', 'GET', '/ui/data', 'debug'],
    ['a check in the dashboard', 'POST', '/ui/try/check?key={key}', 'check'],
    ['a release in the dashboard', 'POST', '/ui/try/release?key={key}&request_id=id', 'release'],
    ['a pause in the dashboard', 'POST', '/ui/pause?key={key}&pauseMillis=1000', 'check'],
    ['the end of a hold in the dashboard', 'POST', '/ui/holds/end?key={key}&handle=a', 'configure'],
    ['a key in the dashboard', 'GET', '/ui/data/key?key={key}', 'debug'],
  ])('%s needs a token, and its scope', async (_what, method, template, scope) => {
    const name = uniqueKey();
    const path = template.replace('{key}', name);
    const key = template.includes('%zz') ? '%zz' : template.includes('{key}') ? name : undefined;
    expectRefusal(await send(app.url, method, path), 401, CHALLENGE, key);
    const unknown = await send(app.url, method, path, bearer({ token: 'token-that-nobody-has' }));
    expectRefusal(unknown, 401, `${CHALLENGE}, error="invalid_token"`, key);
    for (const other of ALL.filter(({ scopes }) => !scopes.includes(scope))) {
      const answer = await send(app.url, method, path, bearer(other));
      const challenge = `${CHALLENGE}, error="insufficient_scope", scope="${scope}"`;
      expectRefusal(answer, 403, challenge, key);
    }
    expect(await stateOf(app.url, name)).toStrictEqual({ Key: name, Found: false });
  });

  test.each([
    ['nothing after the scheme', 'Bearer'],
    ['a token but no scheme', CHECKER.token],
    ['another scheme', `Basic ${CHECKER.token}`],
    ['a longer scheme', `Bearers ${CHECKER.token}`],
  ])('a check with %s is rejected as one without a token', async (_how, Authorization) => {
    const key = uniqueKey();
    const answer = await send(app.url, 'POST', ratePath(key), { Authorization });
    expectRefusal(answer, 401, CHALLENGE, key);
  });

  test.each([
    ['cut short', CHECKER.token.slice(0, -1)],
    ['longer', `${CHECKER.token}x`],
    ['in another case', CHECKER.token.toUpperCase()],
    ['in quotes', `"${CHECKER.token}"`],
    ['not ASCII', 'token-that-is-ÿÿÿÿ'],
    ['of the length of a header', 'x'.repeat(10_000)],
  ])('a check with a token that is %s is rejected', async (_how, token) => {
    const key = uniqueKey();
    const answer = await send(app.url, 'POST', ratePath(key), bearer({ token }));
    expectRefusal(answer, 401, `${CHALLENGE}, error="invalid_token"`, key);
  });

  test('a request with a token of the right scope is served', async () => {
    const key = uniqueKey();
    const id = approvedId(await send(app.url, 'POST', ratePath(key), bearer(CHECKER)));
    expect(await stateOf(app.url, key)).toMatchObject({ NumApprovedThisWindow: 1 });
    const release = await send(app.url, 'DELETE', `${ratePath(key)}/${id}`, bearer(RELEASER));
    expect(release.status).toBe(200);

    expect(await stateOf(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
    for (const path of ['/debug', '/metrics']) {
      expect((await send(app.url, 'GET', path, bearer(OPERATOR))).status).toBe(200);
    }
  });

  test.each(['bearer', 'BEARER', 'bEaReR'])('the scheme may be written %s', async (scheme) => {
    const headers = { Authorization: `${scheme}  ${CHECKER.token}` };

    expect((await send(app.url, 'POST', ratePath(uniqueKey()), headers)).status).toBe(200);
  });

  test.each(['/healthz', '/readyz'])('%s needs no token', async (path) => {
    expect((await send(app.url, 'GET', path)).status).toBe(200);
    expect((await send(app.url, 'GET', path, bearer(NOBODY))).status).toBe(200);
  });

  test("the log has the token's name, if there is one, and no token", async () => {
    const key = uniqueKey();
    await send(app.url, 'POST', ratePath(key), bearer(CHECKER));
    await send(app.url, 'POST', ratePath(key), bearer(CHECKER));
    await send(app.url, 'POST', ratePath(key), bearer(NOBODY));
    await send(app.url, 'POST', ratePath(key), bearer({ token: 'token-that-is-unknown' }));
    const statusOf = ({ res }: LogLine) => (res as { statusCode: number } | undefined)?.statusCode;
    await app.logged((line) => line.key === key && statusOf(line) === 401);

    const lines = app.log.filter((line) => line.key === key);
    expect(lines.map((line) => [statusOf(line), line.caller])).toEqual([
      [200, 'checker'],
      [429, 'checker'],
      [403, 'nobody'],
      [401, undefined],
    ]);
    expect(JSON.stringify(app.log)).not.toContain('token-that');
  });

  test("the log has the token's name when a waiting client disconnects", async () => {
    const key = uniqueKey();
    await send(app.url, 'POST', ratePath(key), bearer(CHECKER));
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`, bearer(CHECKER));
    await untilWaiting(app.url, key, 1, bearer(OPERATOR));
    waiting.disconnect();

    const line = await app.logged(({ status, key: of }) => status === 499 && of === key);
    expect(line.caller).toBe('checker');
  });
});

const scopes = ['check', 'release', 'debug', 'configure'];
const OWNER = { name: 'owner', token: 'token-for-all-keys', scopes };
const TEAM = {
  name: 'team',
  token: 'token-for-keys-of-the-team',
  scopes,
  key_patterns: ['team:.*'],
};

describe('a token with key patterns', () => {
  const app = useApp(
    () => ({
      WINDOW_MILLIS: '3600000',
    }),
    { tokens: [OWNER, TEAM] },
  );
  /** A key of the team, and one of another. */
  let own: string;
  let other: string;
  beforeEach(() => {
    own = `team:${uniqueKey()}`;
    other = `steam:${uniqueKey()}`;
  });

  const asTeam = (method: string, path: string): Promise<Answer> =>
    send(app.url, method, path, bearer(TEAM));

  function expectNotAllowed({ status, json }: Answer, key: string): void {
    expect([status, json()]).toEqual([403, { error: 'the token does not allow this key', key }]);
  }

  test('may check, release, configure and see the keys that a pattern matches', async () => {
    const id = approvedId(await asTeam('POST', `${ratePath(own)}?maxRequests=7`));
    expect((await asTeam('DELETE', `${ratePath(own)}/${id}`)).status).toBe(200);

    expect(await debugState(app.url, own, bearer(TEAM))).toMatchObject({
      Found: true,
      Config: { MaxRequestsPerWindow: 7 },
    });
  });

  test.each(['', '?canWait=true', '?maxRequests=1', '?maxRequests=none'])(
    'may not check another key: %j is forbidden, and makes no key',
    async (query) => {
      expectNotAllowed(await asTeam('POST', `${ratePath(other)}${query}`), other);
      expectNotAllowed(await asTeam('GET', `${ratePath(other)}${query}`), other);

      expect(await debugState(app.url, other, bearer(OWNER))).toMatchObject({ Found: false });
    },
  );

  test('is matched against the decoded key', async () => {
    const path = `/rate/${encodeURIComponent('team:')}a%2F%C3%A4-${uniqueKey()}`;
    expect((await asTeam('POST', path.replace('team', '%74eam'))).status).toBe(200);

    expectNotAllowed(await asTeam('POST', '/rate/x%2Fteam:a'), 'x/team:a');
  });
});

describe('overrides', () => {
  const app = useApp(
    () => ({
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '5',
    }),
    { tokens: [CHECKER, OPERATOR] },
  );
  let key: string;
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (caller: { token: string }, query = '') =>
    send(app.url, 'POST', `${ratePath(key)}${query}`, bearer(caller));

  test.each([
    ['leaves no room', '?maxRequests=1'],
    ['lifts all limits', '?maxRequests=1000000000&maxRequestsInQueue=100000'],
    ['closes the queue', '?maxRequestsInQueue=0'],
    ['changes nothing', '?maxRequests=5'],
  ])(
    'an override that %s is forbidden to a token with only the scope check',
    async (_what, query) => {
      expect((await check(CHECKER)).status).toBe(200);
      const before = await debugState(app.url, key, bearer(OPERATOR));
      for (const wait of ['', '&canWait=true']) {
        const { status, headers, json } = await check(CHECKER, query + wait);

        expect([status, headers['www-authenticate']]).toEqual([
          403,
          'Bearer realm="sluice", error="insufficient_scope", scope="configure"',
        ]);
        expect(json()).toStrictEqual({ error: 'the token lacks the scope configure', key });
      }

      expect(await debugState(app.url, key, bearer(OPERATOR))).toStrictEqual(before);
      expect((await check(CHECKER)).status).toBe(200);
    },
  );
});

describe('requests with wrong tokens', () => {
  const REJECTIONS = 'ratelimit_auth_rejections_total';
  const CHECKER = {
    name: 'checker',
    token: 'token-that-may-check',
    scopes: ['check'],
    key_patterns: ['own.*'],
  };
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
});

describe('the file of tokens', () => {
  const OLD = { name: 'old', token: 'token-that-is-old', scopes: ['check', 'debug', 'configure'] };
  const NEW = { ...OLD, name: 'new', token: 'token-that-came-later' };

  const RELOADED = 'tokens reloaded';

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

  test('while the file is gone, the last tokens may read the metrics, which say so, and nothing else', async () => {
    const gone = async (): Promise<number> =>
      (await scrape(app.url, bearer(OLD))).value('ratelimit_tokens_gone');
    expect(await gone()).toBe(0);
    await rm(file);
    await app.logged(
      ({ msg }) =>
        msg === 'tokens not reloaded, the last good ones stay in use until the next look',
    );
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
});
