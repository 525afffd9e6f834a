import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type GrpcApp, ruleForAll, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, type Gateway, of, useGateways } from '../../support/grpc-gateway.js';
import { begin, ratePath } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';

const GATEWAY = {
  name: 'gateway',
  token: 'token-of-the-gateway',
  scopes: ['check'],
  key_patterns: ['test-.*'],
  waiting_share: 0.25,
};
const CONFIGURER = { name: 'other', token: 'token-of-another', scopes: ['check', 'configure'] };
const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };

const start = useGrpcApps();
const gatewayOf = useGateways();

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

  test('of a caller with the scope check is decided', async () => {
    expect((await gateway.askFor(key, as(GATEWAY))).overall_code).toBe('OK');
  });

  test.each<[what: string, headers: Record<string, string>, reason: string, failure: string[]]>([
    ['without a token', {}, 'token_required', ['UNAUTHENTICATED', 'a bearer token is required']],
    [
      'with another scheme',
      { authorization: 'Basic dGVzdA==' },
      'token_required',
      ['UNAUTHENTICATED', 'a bearer token is required'],
    ],
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
