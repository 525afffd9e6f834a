import { type TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { type DebugHolder, debugState, untilWaiting } from '../../support/debug-state.js';
import { keyPath } from '../../support/dashboard/dashboard-page.js';
import { approvedId, begin, ratePath, send } from '../../support/http-client.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const CALLER = { name: 'caller', token: 'token-of-the-caller', scopes: ['check', 'release'] };
const VIEWER = { name: 'viewer', token: 'token-of-the-viewer', scopes: ['debug'] };
const OPERATOR = {
  name: 'operator',
  token: 'token-of-the-operator',
  scopes: ['debug', 'configure'],
};
const STRANGER = {
  name: 'stranger',
  token: 'token-of-a-stranger',
  scopes: ['configure'],
  key_patterns: ['other'],
};
const MUST = 'holder must be text of 1 to 64 bytes of UTF-8 without control characters';

const redis = useRedis();

describe.each(bothLimiters(redis))('holders (%s limiter)', (_name, settings) => {
  const app = useApp(
    () => ({ ...settings(), ADMIN_PORT: '0', WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }),
    { tokens: [CALLER, VIEWER, OPERATOR, STRANGER] },
  );
  let key: string;
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (query: string) =>
    send(app.url, 'POST', `${ratePath(key)}?${query}`, bearer(CALLER));
  const hold = async (holder: string): Promise<string> =>
    approvedId(await check(`holdMillis=60000&holder=${encodeURIComponent(holder)}`));
  const holders = async (): Promise<readonly DebugHolder[]> =>
    (await debugState(app.adminUrl, key, bearer(VIEWER))).Holders ?? [];
  const end = (handle: string, who: { token: string } = OPERATOR) =>
    send(app.url, 'DELETE', `${ratePath(key)}/holders/${handle}`, bearer(who));

  test('are shown without the request id', async () => {
    const id = await hold('wörker 7: ⚙');
    const { text } = await send(app.adminUrl, 'GET', `/debug/${key}`, bearer(VIEWER));
    expect(text).not.toContain(id);
    const [holder] = await holders();
    expect(holder).toEqual({
      Handle: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      Holder: 'wörker 7: ⚙',
      HeldMillis: expect.any(Number) as number,
      LapseMillis: expect.any(Number) as number,
      Hits: 1,
    });
  });

  test('are left out of a key that holds nothing, and of the list of keys', async () => {
    expect((await check('')).status).toBe(200);
    expect(await debugState(app.adminUrl, key, bearer(VIEWER))).not.toHaveProperty('Holders');
    await send(app.url, 'POST', `${ratePath(key)}?maxRequests=2`, bearer(CALLER));
    const { text } = await send(app.adminUrl, 'GET', '/debug', bearer(VIEWER));
    expect(text).not.toContain('Holders');
  });

  test('of elements of a bulk request are shown as well', async () => {
    const element = { key, holdMillis: 60_000, holder: 'host:1' };
    await checkMany(app.url, [element], bearer(CALLER));
    expect(await holders()).toMatchObject([{ Holder: 'host:1' }]);
  });

  test.each([
    ['holdMillis=60000&holder=', MUST],
    [`holdMillis=60000&holder=${'a'.repeat(65)}`, MUST],
    [`holdMillis=60000&holder=${'%C3%A4'.repeat(33)}`, MUST],
    ['holdMillis=60000&holder=a%0Ab', MUST],
    ['holdMillis=60000&holder=a%C2%85b', MUST],
    ['holdMillis=60000&holder=a&holder=b', 'holder must be given once'],
    ['holder=a', 'holder must be used with holdMillis'],
    ['holder=a&peek=true', 'holder must be left out with peek=true'],
  ])('a check with %s is rejected', async (query, error) => {
    const answer = await check(query);
    expect([answer.status, answer.json()]).toEqual([400, { error, key }]);
    expect(await debugState(app.adminUrl, key, bearer(VIEWER))).toEqual({ Key: key, Found: false });
  });

  test.each([
    [{ holdMillis: 60_000, holder: 'a\u0000' }, MUST],
    [{ holdMillis: 60_000, holder: '\ud800' }, MUST],
    [{ holdMillis: 60_000, holder: 7 }, MUST],
    [{ holder: 'a' }, 'holder must be used with holdMillis'],
  ])('an element with %j is rejected', async (element, error) => {
    const results = await checkMany(app.url, [{ key, ...element }], bearer(CALLER));
    expect(results).toEqual([{ status: 400, error }]);
  });

  test('a hold that is ended serves the queue, and its next renewal is a 404', async () => {
    const id = await hold('stuck:1');
    const waiting = begin(
      app.url,
      'POST',
      `${ratePath(key)}?canWait=true&holdMillis=60000&holder=next%3A1`,
      bearer(CALLER),
    );
    await untilWaiting(app.adminUrl, key, 1, bearer(VIEWER));
    const [{ Handle: handle }] = (await holders()) as [DebugHolder];

    const ended = await end(handle.toUpperCase());

    expect([ended.status, ended.json()]).toEqual([200, { key, handle: handle.toUpperCase() }]);
    approvedId(await waiting.answer);
    expect(await holders()).toMatchObject([{ Holder: 'next:1' }]);
    const renewal = await send(app.url, 'PUT', `${ratePath(key)}/${id}`, bearer(CALLER));
    expect([renewal.status, renewal.json()]).toEqual([404, { error: 'request not found', key }]);
    expect([(await end(handle)).status, (await end('unknown')).json()]).toEqual([
      404,
      { error: 'no such holder', key },
    ]);
  });

  test('ending a hold takes the scope configure, and a key that the caller may use', async () => {
    await hold('host:1');
    const [{ Handle: handle }] = (await holders()) as [DebugHolder];
    for (const who of [CALLER, VIEWER, STRANGER]) expect((await end(handle, who)).status).toBe(403);
    expect(await holders()).toHaveLength(1);
    const other = await send(app.url, 'POST', `${ratePath(key)}/holders/${handle}`);
    expect([other.status, other.headers.allow]).toEqual([405, 'DELETE']);
  });

  describe('in the dashboard', () => {
    const detail = async (app: TestApp, who: { token: string }): Promise<unknown> =>
      (await send(app.adminUrl, 'GET', keyPath('/ui/data/key', key), bearer(who))).json();

    test('are listed, and can be ended by who may configure', async () => {
      await hold('host:1');
      const [{ Handle: handle }] = (await holders()) as [DebugHolder];
      const listed = [{ handle, holder: 'host:1' }];
      expect(await detail(app, VIEWER)).toMatchObject({
        holdings: listed,
        may: { endHolds: false },
      });
      expect(await detail(app, OPERATOR)).toMatchObject({
        holdings: listed,
        may: { endHolds: true },
      });
      const path = keyPath('/ui/holds/end', key, { handle });
      const statusOf = async (who: { token: string }) =>
        (await send(app.adminUrl, 'POST', path, bearer(who))).status;
      expect([await statusOf(VIEWER), await statusOf(STRANGER)]).toEqual([403, 403]);
      expect([await statusOf(OPERATOR), await statusOf(OPERATOR)]).toEqual([200, 404]);
      expect(await holders()).toEqual([]);
    });
  });
});
