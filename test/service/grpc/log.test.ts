import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type GrpcApp, ruleForAll, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, type Gateway, of, useGateways } from '../../support/grpc-gateway.js';
import { approve, begin, ratePath } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import type { LogLine } from '../../support/replica-process.js';
import { bearer } from '../../support/tokens.js';
import { callersSpan } from '../../support/tracing/trace-headers.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const start = useGrpcApps();
const gatewayOf = useGateways();

const CALLER = { name: 'the gateway', token: 'token-of-the-gateway', scopes: ['check'] };

const millis = expect.any(Number) as unknown;

const linesIn = (app: GrpcApp): LogLine[] => app.log.filter(({ msg }) => msg === 'call answered');

/** One call of each class: approved, denied, rejected, failed. */
async function callsOfEveryClass(environment: Record<string, string>): Promise<{
  app: GrpcApp;
  keys: readonly [string, string];
}> {
  const app = await start(
    { MAX_WAITERS: '0', ...environment },
    {
      rules: [
        {
          key_pattern: 'patient-.*',
          key_pattern_is_regex: true,
          max_wait_millis: 86_400_000,
        },
      ],
    },
  );
  const gateway = gatewayOf(app);
  const [key, patient] = [uniqueKey(), `patient-${uniqueKey()}`];
  await approve(app.url, patient);
  const headers = { 'x-correlation-id': 'of the test' };
  await gateway.askFor(key, { headers });
  await gateway.askFor(key, { headers });
  await failureOf(gateway.ask({ descriptors: [] }, { headers }));
  await failureOf(gateway.askFor(patient, { headers }));
  return { app, keys: [key, patient] };
}

test.each([
  ['true', 'false', 'false', [200]],
  ['false', 'true', 'false', [429, 400]],
  ['false', 'false', 'true', [503]],
  ['false', 'false', 'false', []],
])(
  'LOG_2XX=%s, LOG_4XX=%s and LOG_5XX=%s log the statuses %j',
  async (LOG_2XX, LOG_4XX, LOG_5XX, statuses) => {
    const { app } = await callsOfEveryClass({ LOG_2XX, LOG_4XX, LOG_5XX, LOG_LEVEL: 'debug' });

    expect(linesIn(app).map(({ status }) => status)).toEqual(statuses);
  },
);

test('each line has the keys, the outcome, the duration and the correlation id', async () => {
  const { app, keys } = await callsOfEveryClass({
    LOG_2XX: 'true',
    LOG_4XX: 'true',
    LOG_5XX: 'true',
    LOG_LEVEL: 'debug',
  });
  const [key, patient] = keys;
  const each = { correlationId: 'of the test', responseTime: millis };

  expect(linesIn(app)).toMatchObject([
    { level: 'info', ...each, keys: [key], status: 200, code: 'OK' },
    { level: 'info', ...each, keys: [key], status: 429, code: 'OVER_LIMIT' },
    {
      level: 'info',
      ...each,
      status: 400,
      errorCode: 'INVALID_PARAMETER',
      reason: 'descriptors must have at least one descriptor',
    },
    {
      level: 'debug',
      ...each,
      keys: [patient],
      status: 503,
      errorCode: 'TOO_MANY_WAITERS',
      reason: 'too many waiters on this replica',
    },
  ]);
});

test('each line has the caller and its trace id, also if the key is rejected', async () => {
  const app = await start(
    { LOG_2XX: 'true', LOG_4XX: 'true' },
    { tokens: [{ ...CALLER, key_patterns: ['test-.*'] }] },
  );
  const gateway = gatewayOf(app);
  const { traceId, headers } = callersSpan();
  const options = { headers: { ...headers, ...bearer(CALLER) } };
  await gateway.askFor(uniqueKey(), options);
  await failureOf(gateway.askFor('another', options));
  await failureOf(gateway.askFor(uniqueKey()));

  const lines = linesIn(app);
  expect(lines).toMatchObject([
    { status: 200, caller: 'the gateway', trace_id: traceId },
    { status: 403, caller: 'the gateway', trace_id: traceId, keys: ['another'] },
    { status: 401 },
  ]);
  expect(lines[2]).not.toHaveProperty('caller');
  expect(JSON.stringify(app.log)).not.toContain(CALLER.token);
});

test('each call without a correlation id gets one of its own', async () => {
  const app = await start({ LOG_2XX: 'true' });
  const gateway = gatewayOf(app);
  await gateway.askFor(uniqueKey());
  await gateway.askFor(uniqueKey());

  const ids = linesIn(app).map(({ correlationId }) => correlationId);
  for (const id of ids) expect(id).toMatch(/^[\da-f-]{36}$/);
  expect(new Set(ids).size).toBe(2);
});

test('a shadow denial is logged if denials are logged', async () => {
  const rules = [ruleForAll({ max_requests_per_window: 0, shadow: true })];
  const [logs, silent] = [await start({ LOG_4XX: 'true' }, { rules }), await start({}, { rules })];
  const key = uniqueKey();
  for (const app of [logs, silent]) await gatewayOf(app).askFor(key);

  const shadowed = { key, reason: 'limit_reached' };
  expect(logs.log).toContainEqual(expect.objectContaining(shadowed));
  expect(silent.log).not.toContainEqual(expect.objectContaining(shadowed));
});

test('a call that its gateway gives up while it waits has a line with 499, whatever the settings', async () => {
  const app = await start(
    { LOG_4XX: 'false' },
    { rules: [ruleForAll({ max_wait_millis: 86_400_000 })] },
  );
  const key = uniqueKey();
  await approve(app.url, key);
  const headers = { 'x-correlation-id': 'the gateway' };
  const call = gatewayOf(app).begin({ descriptors: [of(key)] }, { headers });
  await untilWaiting(app.url, key, 1);
  call.cancel();
  await untilWaiting(app.url, key, 0);

  const line = await until(() => app.log.find(({ status }) => status === 499));
  expect(line).toMatchObject({ level: 'info', keys: [key], correlationId: 'the gateway' });
  expect(linesIn(app)).toEqual([]);
});

const GATEWAY = {
  name: 'gateway',
  token: 'token-of-the-gateway',
  scopes: ['check'],
  key_patterns: ['test-.*'],
  waiting_share: 0.25,
};
const CONFIGURER = { name: 'other', token: 'token-of-another', scopes: ['check', 'configure'] };
const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };

describe('with tokens, a call', () => {
  let app: GrpcApp;
  let gateway: Gateway;
  let key: string;
  beforeEach(async () => {
    app = await start(
      { MAX_WAITERS: '4' },
      {
        tokens: [GATEWAY, CONFIGURER, OPERATOR],
        rules: [ruleForAll({ max_wait_millis: 86_400_000 })],
      },
    );
    gateway = gatewayOf(app);
    key = uniqueKey();
  });

  const as = (caller: { token: string }) => ({ headers: { ...bearer(caller) } });

  const rejectionsFor = async (reason: string): Promise<number> =>
    (await scrape(app.url, bearer(OPERATOR))).value('ratelimit_auth_rejections_total', { reason });

  test.each<[what: string, headers: Record<string, string>, reason: string, failure: string[]]>([
    ['without a token', {}, 'token_required', ['UNAUTHENTICATED', 'a bearer token is required']],
    [
      'with an unknown token',
      { authorization: 'Bearer token-of-nobody-at-all' },
      'token_unknown',
      ['UNAUTHENTICATED', 'unknown token'],
    ],
    [
      'with a token for another scope',
      { ...bearer(OPERATOR) },
      'scope_missing',
      ['PERMISSION_DENIED', 'the token lacks the scope check'],
    ],
  ])('%s is rejected, and takes nothing', async (_what, headers, reason, failure) => {
    expect(await failureOf(gateway.askFor(key, { headers }))).toEqual(failure);
    expect(await rejectionsFor(reason)).toBe(1);
    expect((await debugState(app.url, key, bearer(OPERATOR))).Found).toBe(false);
  });

  test("for another caller's key is rejected, and takes nothing of its own keys", async () => {
    const descriptors = [of(key), of(`other-${key}`)];

    expect(await failureOf(gateway.ask({ descriptors }, as(GATEWAY)))).toEqual([
      'PERMISSION_DENIED',
      'the token does not allow this key',
    ]);
    expect((await debugState(app.url, key, bearer(OPERATOR))).Found).toBe(false);
  });

  test("for another caller's key does not learn how long its window is", async () => {
    const descriptors = [of(`other-${key}`, { limit: { requests_per_unit: 5, unit: 'DAY' } })];

    expect(await failureOf(gateway.ask({ descriptors }, as(GATEWAY)))).toEqual([
      'PERMISSION_DENIED',
      'the token does not allow this key',
    ]);
  });

  test('with a limit of its own needs the scope configure', async () => {
    const descriptors = [of(key, { limit: { requests_per_unit: 5, unit: 'HOUR' } })];

    expect(await failureOf(gateway.ask({ descriptors }, as(GATEWAY)))).toEqual([
      'PERMISSION_DENIED',
      'the token lacks the scope configure',
    ]);
    expect((await gateway.ask({ descriptors }, as(CONFIGURER))).overall_code).toBe('OK');
  });

  test("takes a waiting place of its caller, shared with HTTP, and not another caller's", async () => {
    await gateway.askFor(key, as(GATEWAY));
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`, bearer(GATEWAY));
    await untilWaiting(app.url, key, 1, bearer(OPERATOR));

    expect(await failureOf(gateway.askFor(key, as(GATEWAY)))).toEqual([
      'UNAVAILABLE',
      'too many waiters of this caller on this replica',
    ]);
    const other = gateway.begin({ descriptors: [of(key)] }, as(CONFIGURER));
    await untilWaiting(app.url, key, 2, bearer(OPERATOR));
    waiting.disconnect();
    other.cancel();
    await untilWaiting(app.url, key, 0, bearer(OPERATOR));

    const again = gateway.begin({ descriptors: [of(key)] }, as(GATEWAY));
    await untilWaiting(app.url, key, 1, bearer(OPERATOR));
    again.cancel();
  });

  test('fails if it needs two waiting places and its caller has one', async () => {
    const other = uniqueKey();
    await gateway.ask({ descriptors: [of(key), of(other)] }, as(GATEWAY));

    expect(
      await failureOf(gateway.ask({ descriptors: [of(key), of(other)] }, as(GATEWAY))),
    ).toEqual(['UNAVAILABLE', 'too many waiters of this caller on this replica']);
    await untilWaiting(app.url, key, 0, bearer(OPERATOR));
  });
});
