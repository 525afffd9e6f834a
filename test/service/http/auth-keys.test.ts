import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { type Answer, approvedId, ratePath, send } from '../../support/http-client.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useApp } from '../../support/use-apps.js';

const scopes = ['check', 'release', 'debug', 'configure'];
const OWNER = { name: 'owner', token: 'token-for-all-keys', scopes };
const TEAM = {
  name: 'team',
  token: 'token-for-keys-of-the-team',
  scopes,
  key_patterns: ['team:.*'],
};

const redis = useRedis();

describe.each(bothLimiters(redis))('a token with key patterns (%s limiter)', (_name, settings) => {
  const app = useApp(
    () => ({
      ...settings(),
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

  test('may not release an approval of another key', async () => {
    const id = approvedId(await send(app.url, 'POST', ratePath(other), bearer(OWNER)));
    expectNotAllowed(await asTeam('DELETE', `${ratePath(other)}/${id}`), other);
    expectNotAllowed(await asTeam('DELETE', `${ratePath(other)}/unknown`), other);

    expect(await debugState(app.url, other, bearer(OWNER))).toMatchObject({
      NumApprovedThisWindow: 1,
    });
  });

  test('may not see another key, whether it exists or not', async () => {
    const missing = `x${uniqueKey()}`;
    await send(app.url, 'POST', ratePath(other), bearer(OWNER));
    for (const key of [other, missing, '%zz']) {
      expectNotAllowed(await asTeam('GET', `/debug/${key}`), key);
    }
    expectNotAllowed(await asTeam('GET', `/debug/${other}/more`), other);
    expect((await asTeam('HEAD', `/debug/${other}`)).status).toBe(403);
  });

  test('lists only its own keys', async () => {
    for (const key of [own, other]) await send(app.url, 'POST', ratePath(key), bearer(OWNER));
    const listed = async (caller: { token: string }): Promise<string[]> => {
      const { json } = await send(app.url, 'GET', '/debug', bearer(caller));
      return Object.keys((json() as { Instances: object }).Instances);
    };

    expect(await listed(OWNER)).toEqual(expect.arrayContaining([own, other]));
    const seen = await listed(TEAM);
    expect(seen).toContain(own);
    expect(seen.filter((key) => !key.startsWith('team:'))).toEqual([]);
  });

  test('is matched against the decoded key', async () => {
    const path = `/rate/${encodeURIComponent('team:')}a%2F%C3%A4-${uniqueKey()}`;
    expect((await asTeam('POST', path.replace('team', '%74eam'))).status).toBe(200);

    expectNotAllowed(await asTeam('POST', '/rate/x%2Fteam:a'), 'x/team:a');
  });

  test('may read the metrics, which name no key', async () => {
    expect((await asTeam('GET', '/metrics')).status).toBe(200);
  });
});
