import { type TestApp } from '../../../support/app.js';
import { bothLimiters } from '../../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import { approvedId, begin, send } from '../../../support/http-client.js';
import { bearer } from '../../../support/tokens.js';
import { useRedis } from '../../../support/use-redis.js';
import { keyPath } from '../../../support/dashboard/dashboard-page.js';
import { useApps } from '../../../support/use-apps.js';

const start = useApps();

const redis = useRedis();

describe.each(bothLimiters(redis))('trying by hand (%s limiter)', (_name, settings) => {
  let app: TestApp;
  beforeEach(async () => {
    app = await start({ ...settings(), ADMIN_PORT: '0', WINDOW_MILLIS: '3600000' });
  });

  test('a check, a wait and a release count like those of clients, also on the admin port', async () => {
    const url = app.adminUrl;
    const path = keyPath('/ui/try/check', 'job', { maxRequests: '1' });
    const first = approvedId(await send(url, 'POST', path));
    const denied = await send(url, 'POST', path);
    expect(denied.status).toBe(429);
    expect(denied.headers['ratelimit-policy']).toBe('"default";q=1;w=3600');
    expect(denied.json()).toEqual({ error: 'rate limit exceeded', key: 'job' });

    const waiting = begin(url, 'POST', keyPath('/ui/try/check', 'job', { canWait: 'true' }));
    await untilWaiting(url, 'job', 1);
    const gone = begin(url, 'POST', keyPath('/ui/try/check', 'job', { canWait: 'true' }));
    await untilWaiting(url, 'job', 2);
    gone.disconnect();
    await untilWaiting(url, 'job', 1);
    const release = keyPath('/ui/try/release', 'job', { request_id: first });
    const released = await send(url, 'POST', release);
    expect([released.status, released.json()]).toEqual([200, { request_id: first }]);
    approvedId(await waiting.answer);

    expect((await send(url, 'POST', release)).status).toBe(404);
    expect(await debugState(url, 'job')).toMatchObject({ NumApprovedThisWindow: 1 });
  });

  test.each([
    ['/ui/try/check', 'key must be given once'],
    ['/ui/try/release?key=a', 'request_id must be given once'],
    ['/ui/try/release?request_id=a', 'key must be given once'],
  ])('POST %s is rejected', async (path, error) => {
    const answer = await send(app.adminUrl, 'POST', path);
    expect(answer.status).toBe(400);
    expect(answer.json()).toMatchObject({ error });
  });

  test.each(['/ui/try/check', '/ui/try/release'])('GET %s is not allowed', async (path) => {
    const answer = await send(app.adminUrl, 'GET', keyPath(path, 'job'));
    expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
    expect(await debugState(app.adminUrl, 'job')).toEqual({ Key: 'job', Found: false });
  });
});

test('trying needs the scopes of checks and releases, and keys that the caller may use', async () => {
  const caller = (name: string, ...scopes: string[]) => ({
    name,
    token: `token-of-the-caller-${name}`,
    scopes,
    key_patterns: ['own'],
  });
  const [seer, checker, releaser] = [
    caller('seer', 'debug'),
    caller('checker', 'check'),
    caller('releaser', 'release'),
  ];
  const app = await start({}, { tokens: [seer, checker, releaser] });
  const statusOf = async (who: { token: string }, path: string) =>
    (await send(app.url, 'POST', path, bearer(who))).status;
  const check = (key: string) => keyPath('/ui/try/check', key);
  const release = (key: string) => keyPath('/ui/try/release', key, { request_id: 'unknown' });
  const statuses = {
    nobody: (await send(app.url, 'POST', check('own'))).status,
    seer: [await statusOf(seer, check('own')), await statusOf(seer, release('own'))],
    checker: [await statusOf(checker, check('own')), await statusOf(checker, release('own'))],
    releaser: [await statusOf(releaser, check('own')), await statusOf(releaser, release('own'))],
    others: [await statusOf(checker, check('other')), await statusOf(releaser, release('other'))],
    override: await statusOf(checker, keyPath('/ui/try/check', 'own', { maxRequests: '3' })),
  };

  expect(statuses).toEqual({
    nobody: 401,
    seer: [403, 403],
    checker: [200, 403],
    releaser: [403, 404],
    others: [403, 403],
    override: 403,
  });
});
