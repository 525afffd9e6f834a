import { bothLimiters } from '../../support/both-limiters.js';
import { type DebugState, debugState, untilWaiting } from '../../support/debug-state.js';
import { type Answer, approvedId, begin, ratePath, send } from '../../support/http-client.js';
import type { LogLine } from '../../support/replica-process.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const CHECKER = { name: 'checker', token: 'token-that-may-check', scopes: ['check'] };
const RELEASER = { name: 'releaser', token: 'token-that-may-release', scopes: ['release'] };
const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };
const NOBODY = { name: 'nobody', token: 'token-that-may-nothing', scopes: [] };
const ALL = [CHECKER, RELEASER, OPERATOR, NOBODY];

const CHALLENGE = 'Bearer realm="sluice"';

const redis = useRedis();
const start = useApps();

const stateOf = (url: string, key: string): Promise<DebugState> =>
  debugState(url, key, bearer(OPERATOR));

describe.each(bothLimiters(redis))('with tokens (%s limiter)', (_name, settings) => {
  const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
  const app = useApp(() => ({ ...settings(), ...hour, LOG_2XX: 'true', LOG_4XX: 'true' }), {
    tokens: ALL,
  });

  function expectRefusal(answer: Answer, status: number, challenge: string, key?: string): void {
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([status, challenge]);
    expect(answer.headers['content-type']).toBe('application/json');
    const error: unknown = expect.stringMatching(/token/);
    expect(answer.json()).toStrictEqual(key === undefined ? { error } : { error, key });
  }

  describe.each([
    ['a check', 'POST', '/rate/{key}', CHECKER, 'check'],
    ['a check by GET', 'GET', '/rate/{key}', CHECKER, 'check'],
    ['a check that would wait', 'POST', '/rate/{key}?canWait=true', CHECKER, 'check'],
    ['a release', 'DELETE', '/rate/{key}/id', RELEASER, 'release'],
    ['the state of a key', 'GET', '/debug/{key}', OPERATOR, 'debug'],
    ['the state of all keys', 'GET', '/debug', OPERATOR, 'debug'],
    ['the metrics', 'GET', '/metrics', OPERATOR, 'debug'],
  ])('%s', (_what, method, template, entitled, scope) => {
    let key: string | undefined;
    let path: string;
    beforeEach(() => {
      const name = uniqueKey();
      key = template.includes('{key}') ? name : undefined;
      path = template.replace('{key}', name);
    });
    afterEach(async () => {
      if (key === undefined) return;
      expect(await stateOf(app.url, key)).toStrictEqual({ Key: key, Found: false });
    });

    test.each([
      ['without a token', {}],
      ['with nothing after the scheme', { Authorization: 'Bearer' }],
      ['with blanks after the scheme', { Authorization: 'Bearer   ' }],
      ['with a token but no scheme', { Authorization: entitled.token }],
      ['with another scheme', { Authorization: `Basic ${entitled.token}` }],
      ['with a longer scheme', { Authorization: `Bearers ${entitled.token}` }],
    ])('is rejected %s', async (_how, headers) => {
      expectRefusal(await send(app.url, method, path, headers), 401, CHALLENGE, key);
    });

    test.each([
      ['unknown', 'token-that-nobody-has'],
      ['cut short', entitled.token.slice(0, -1)],
      ['longer', `${entitled.token}x`],
      ['in another case', entitled.token.toUpperCase()],
      ['followed by another', `${entitled.token} ${entitled.token}`],
      ['in quotes', `"${entitled.token}"`],
      ['not ASCII', 'token-that-is-ÿÿÿÿ'],
      ['of the length of a header', 'x'.repeat(10_000)],
    ])('is rejected with a token that is %s', async (_how, token) => {
      const answer = await send(app.url, method, path, bearer({ token }));

      expectRefusal(answer, 401, `${CHALLENGE}, error="invalid_token"`, key);
    });

    test.each(ALL.filter((other) => other !== entitled))(
      'is forbidden with a token for $scopes',
      async (other) => {
        const answer = await send(app.url, method, path, bearer(other));

        const challenge = `${CHALLENGE}, error="insufficient_scope", scope="${scope}"`;
        expectRefusal(answer, 403, challenge, key);
      },
    );
  });

  test.each([
    ['the state of a key that can not be decoded', '/debug/%zz', '%zz'],
    ['a path below the path of a key', '/debug/key/more', 'key'],
  ])('%s is rejected without a token', async (_what, path, key) => {
    expectRefusal(await send(app.url, 'GET', path), 401, CHALLENGE, key);
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

  test('a rejected request does not change a key that exists', async () => {
    const key = uniqueKey();
    const id = approvedId(await send(app.url, 'POST', ratePath(key), bearer(CHECKER)));
    const before = await stateOf(app.url, key);
    for (const headers of [{}, bearer(NOBODY), bearer({ token: 'token-that-nobody-has' })]) {
      await send(app.url, 'POST', `${ratePath(key)}?maxRequests=5&maxRequestsInQueue=5`, headers);
      await send(app.url, 'POST', `${ratePath(key)}?canWait=true`, headers);
      await send(app.url, 'DELETE', `${ratePath(key)}/${id}`, headers);
    }

    expect(await stateOf(app.url, key)).toStrictEqual(before);
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

test('without tokens every request is allowed, whatever token it has', async () => {
  const app = await start();
  const key = uniqueKey();
  const id = approvedId(await send(app.url, 'POST', ratePath(key), bearer(NOBODY)));
  const paths = [`${ratePath(key)}/${id}`, '/debug', '/metrics'];
  const methods = ['DELETE', 'GET', 'GET'];
  const answers = await Promise.all(paths.map((path, i) => send(app.url, methods[i]!, path)));

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
});
